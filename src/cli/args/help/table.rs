//! The examples and notes of each command.

/// The end of the help of one command.
pub(super) struct Help {
    /// The words of the command; none for the help of the program.
    pub(super) command: &'static [&'static str],
    /// Command lines that work as they are, once their names are replaced.
    pub(super) examples: &'static [&'static str],
    /// Paragraphs, each of which is wrapped at the width of the terminal.
    pub(super) notes: &'static str,
}

const fn help(
    command: &'static [&'static str],
    examples: &'static [&'static str],
    notes: &'static str,
) -> Help {
    Help {
        command,
        examples,
        notes,
    }
}

pub(super) const HELPS: [Help; 59] = [
    help(
        &[],
        &[
            "tarsy submit 'disk full on db-3' --watch",
            "tarsy watch",
            "tarsy sessions list --since 24h",
        ],
        EXIT_CODES,
    ),
    help(
        &["worker"],
        &[
            "tarsy worker",
            "tarsy worker --slots 8 --listen 0.0.0.0:9090",
        ],
        "",
    ),
    help(
        &["llm-service"],
        &[
            "tarsy llm-service",
            "tarsy llm-service --allow-base-url http://127.0.0.1:8000",
        ],
        "The section llm_service of tarsy.yaml has further settings: TLS, limits, and the same permissions.\n\
         The bearer token that clients have to send comes from TARSY_LLM_TOKEN, or from the file that \
         TARSY_LLM_TOKEN_FILE or llm_service.token_file names. Without a token or llm_service.tls.client_ca, only a \
         loopback address is accepted.",
    ),
    help(
        &["receive"],
        &[
            "tarsy receive",
            "TARSY_RECEIVE_TOKEN=… tarsy receive --listen 0.0.0.0:8475",
            "tarsy receive --slack-only --listen 0.0.0.0:8477",
        ],
        "The bearer token that clients have to send comes from the environment: TARSY_RECEIVE_TOKEN, or the file that \
         TARSY_RECEIVE_TOKEN_FILE names. Without one, only a loopback address is accepted.",
    ),
    help(
        &["web"],
        &[
            "tarsy web",
            "TARSY_WEB_TOKEN=… tarsy web --listen 0.0.0.0:8476",
        ],
        "The section web of tarsy.yaml says how users are known and what they may do. The token comes from the \
         environment: TARSY_WEB_TOKEN, or the file that TARSY_WEB_TOKEN_FILE names; with web.auth: proxy, the proxy's \
         secret comes from TARSY_WEB_PROXY_SECRET or TARSY_WEB_PROXY_SECRET_FILE. Without either, only a loopback \
         address is accepted.",
    ),
    help(
        &["migrate"],
        &["tarsy migrate", "tarsy migrate --patience 30m"],
        "",
    ),
    help(
        &["prune"],
        &[
            "tarsy prune --older-than 90d --dry-run",
            "tarsy prune --sessions 1000d --entries 30d",
        ],
        "An age such as 90d counts from when an investigation was settled. One that runs, that is not published, that a \
         question or an alert of a later day belongs to, or that answers for new alerts (dedupe.cooldown) stays.",
    ),
    help(
        &["submit"],
        &[
            "tarsy submit alert.json --watch",
            "tarsy submit 'disk full on db-3' --priority high",
            "kubectl describe pod web-0 | tarsy submit - --watch",
        ],
        "",
    ),
    help(
        &["watch"],
        &[
            "tarsy watch",
            "tarsy watch 0d4be6c1 --thinking",
            "tarsy watch --all --json",
        ],
        "",
    ),
    help(
        &["ask"],
        &[
            "tarsy ask 0d4be6c1 'Would a limit of 768Mi be enough?'",
            "tarsy ask 0d4be6c1 - < question.txt",
        ],
        "",
    ),
    help(
        &["queue"],
        &["tarsy queue", "tarsy queue --limit 50 --json"],
        "",
    ),
    help(
        &["sessions", "list"],
        &[
            "tarsy sessions list --status failed,timed-out --since 24h",
            "tarsy sessions list --label cluster=eu-1 --since 2026-11-27 --json",
            "tarsy sessions list --search '\"out of memory\" -staging'",
        ],
        "",
    ),
    help(
        &["sessions", "show"],
        &[
            "tarsy sessions show 0d4be6c1",
            "tarsy sessions show 0d4be6c1 --report > report.md",
            "tarsy sessions show 0d4be6c1 --prompt last",
        ],
        "",
    ),
    help(
        &["sessions", "past"],
        &[
            "tarsy sessions past 0d4be6c1",
            "tarsy sessions past 0d4be6c1 --days 90 --json",
        ],
        "",
    ),
    help(
        &["sessions", "search"],
        &["tarsy sessions search 0d4be6c1 '100 % full' --json"],
        "",
    ),
    help(
        &["sessions", "rerun"],
        &[
            "tarsy sessions rerun 0d4be6c1 --watch",
            "tarsy sessions rerun 0d4be6c1 --chain team",
        ],
        "",
    ),
    help(
        &["sessions", "cancel"],
        &["tarsy sessions cancel 0d4be6c1 --wait"],
        "",
    ),
    help(
        &["approvals", "list"],
        &[
            "tarsy approvals list",
            "tarsy approvals list --all --since 7d --json",
        ],
        "",
    ),
    help(
        &["approvals", "show"],
        &[
            "tarsy approvals show 7f3a9c12:42",
            "tarsy approvals show 7f3a9c12:42 --watch",
        ],
        "",
    ),
    help(
        &["approvals", "approve"],
        &[
            "tarsy approvals approve 7f3a9c12:42",
            "tarsy approvals approve 7f3a9c12:42 --call 5b1f0c9a",
        ],
        DECISIONS,
    ),
    help(
        &["approvals", "deny"],
        &[
            "tarsy approvals deny 7f3a9c12:42 --comment 'the disk is replaced at noon'",
            "tarsy approvals deny 7f3a9c12:42 --session",
        ],
        DECISIONS,
    ),
    help(
        &["approvals", "export"],
        &["tarsy approvals export --since 30d --jsonl > votes.jsonl"],
        "Votes that did not count are in it, too, each with the reason. After a failure a part may be missing: the exit \
         code is not 0 then.",
    ),
    help(
        &["approvals", "freeze"],
        &[
            "tarsy approvals freeze --until 8h --reason 'release weekend'",
            "tarsy approvals freeze",
        ],
        "Everyone of approvals.people may begin and end a freeze. Calls that were sent before it are not stopped.",
    ),
    help(
        &["approvals", "unfreeze"],
        &["tarsy approvals unfreeze"],
        "",
    ),
    help(
        &["verdict"],
        &[
            "tarsy verdict 0d4be6c1 right --action 'raised the limit to 768Mi'",
            "tarsy verdict 0d4be6c1 wrong --cause 'the leak of version 4.2'",
        ],
        VERDICTS,
    ),
    help(
        &["verdicts", "export"],
        &["tarsy verdicts export --since 30d --jsonl > judged.jsonl"],
        "Each line is an investigation with its alert, plan, providers, analysis and newest verdict. Texts are masked as \
         they are stored. After a failure a part may be missing: the exit code is not 0 then.",
    ),
    help(
        &["dead-letters", "list"],
        &[
            "tarsy dead-letters list",
            "tarsy dead-letters list --limit 100 --json",
        ],
        "",
    ),
    help(
        &["dead-letters", "show"],
        &[
            "tarsy dead-letters show 0d4be6c1",
            "tarsy dead-letters show @12 --body > alert.json",
        ],
        "",
    ),
    help(
        &["dead-letters", "retry"],
        &["tarsy dead-letters retry 0d4be6c1 --watch"],
        "",
    ),
    help(
        &["dead-letters", "drop"],
        &["tarsy dead-letters drop @12"],
        "",
    ),
    help(
        &["drill"],
        &[
            "tarsy drill disk-full --kill",
            "tarsy drill approve-restart --kill --no-approve",
            "tarsy drill ./incident --provider gemini",
            "tarsy drill --list",
        ],
        "A folder of your own has the files that docs/drills.md describes: the alert, what the tools answer, and a rubric.",
    ),
    help(
        &["init"],
        &[
            "tarsy init",
            "tarsy init --path staging.yaml",
            "tarsy init --stdout",
        ],
        "It looks for keys in variables (GEMINI_API_KEY, ANTHROPIC_API_KEY, OPENAI_API_KEY, XAI_API_KEY and others), for \
         a project of Vertex AI, a kubeconfig, and an Ollama at 127.0.0.1:11434. It prints what it found, and writes the \
         names of variables only, never their values.",
    ),
    help(
        &["config", "check"],
        &[
            "tarsy config check",
            "tarsy config check --config staging.yaml",
        ],
        "",
    ),
    help(
        &["config", "show"],
        &["tarsy config show", "tarsy config show --json"],
        "",
    ),
    help(
        &["config", "schema"],
        &["tarsy config schema > tarsy.schema.json"],
        "An editor with a language server for YAML then completes and checks the file whose first line is\n\
         # yaml-language-server: $schema=tarsy.schema.json",
    ),
    help(
        &["config", "example"],
        &[
            "tarsy config example --list",
            "tarsy config example gemini > tarsy.yaml",
            "tarsy config example prometheus --into tarsy.yaml",
        ],
        "",
    ),
    help(
        &["doctor"],
        &[
            "tarsy doctor",
            "tarsy doctor --no-probe --json",
            "tarsy doctor --permissions",
        ],
        "Each model that the configuration uses is asked for one word, and each tool server for one call of a tool that \
         reads.",
    ),
    help(
        &["health"],
        &["tarsy health", "tarsy health 127.0.0.1:9091"],
        "",
    ),
    help(
        &["models"],
        &["tarsy models", "tarsy models gemini --probe"],
        "Keys are in the environment of the LLM service (tarsy llm-service), so that service is asked whether they are \
         set. No key, and nothing about its value, is sent or printed.\n\n\
         --probe sends each model a small request with one tool, which is not run. If no structured call comes, a second \
         request asks for a call as text (react). Both cost tokens: 4,096 of output at most each. The exit code is 1 if \
         no strategy fits a provider.",
    ),
    help(
        &["tools"],
        &[
            "tarsy tools",
            "tarsy tools kubernetes",
            "tarsy tools call kubernetes.namespaces_list",
        ],
        "The list gives the reason why each tool is offered to models or not: the keys tools, deny, read_only, allow and \
         trust_hints of its server decide, and the tools of an agent. Exit code 1: a server did not answer.",
    ),
    help(
        &["tools", "call"],
        &["tarsy tools call kubernetes.pods_log --args '{\"name\": \"web-0\"}' --whole"],
        "The rules are those of models: a tool that no model may call is not called here either, secrets are masked, and \
         the result is cut as for an agent unless --whole is given. Exit code 1: no result, or the tool reports an error.",
    ),
    help(
        &["tools", "gaps"],
        &["tarsy tools gaps", "tarsy tools gaps --since 7d --json"],
        "The newest 2000 sessions since then are looked at. Counts are those of the journal: \"arguments\" do not fit the \
         schema of the tool, and \"no server\" could not be reached.",
    ),
    help(&["notify", "test"], &["tarsy notify test oncall"], ""),
    help(
        &["routes", "test"],
        &[
            "tarsy routes test alert.json",
            "tarsy routes test alert.json --suffix shop -H 'Tarsy-Tools: k8s.*'",
        ],
        "The first route of tarsy.yaml whose matchers all hold counts. No server is asked: of tools the patterns are shown.",
    ),
    help(
        &["skills", "check"],
        &["tarsy skills check", "tarsy skills check --tools"],
        "Exit code 1: a skill is left out or should be mended, or tarsy.yaml names one that does not exist.",
    ),
    help(&["skills", "list"], &["tarsy skills list"], ""),
    help(
        &["skills", "show"],
        &[
            "tarsy skills show pg-storage",
            "tarsy skills show pg-storage queries.md",
        ],
        "",
    ),
    help(&["destinations", "list"], &["tarsy destinations list"], ""),
    help(
        &["destinations", "check"],
        &["tarsy destinations check jira"],
        "",
    ),
    help(
        &["destinations", "test"],
        &[
            "tarsy destinations test jira --alert alert.json",
            "tarsy destinations test jira --alert alert.json --send",
        ],
        "Prints the request that adds the note, and before it those that look a reference up and list the notes. With \
         --send the note is added to what the alert names. Exit code 1: it was not.",
    ),
    help(&["sources", "list"], &["tarsy sources list"], ""),
    help(&["sources", "show"], &["tarsy sources show pagerduty"], ""),
    help(
        &["sources", "test"],
        &["tarsy sources test", "tarsy sources test ./samples"],
        "A folder has <source>/samples/<incident>/<nn>.json, each with <nn>.expected.yaml beside it: title, type, \
         severity and status, or a list of them. All bodies of one incident need one fingerprint, and no two incidents \
         the same.\nWithout a folder the samples of the built-in sources are read, with the sources of tarsy.yaml \
         before them.",
    ),
    help(
        &["sources", "init"],
        &["tarsy sources init --name shop-watch < body.json >> sources.yaml"],
        "The output belongs under `sources:` in tarsy.yaml. Complete it: a body of one moment does not show every word \
         of a state. tarsy inspect alert --source shop-watch --why shows what each line finds.",
    ),
    help(
        &["inspect", "alert"],
        &["tarsy inspect alert body.json --source datadog --why"],
        "",
    ),
    help(
        &["inspect", "reply"],
        &[
            "printf 'Thought: Full?\\nAction: host.df\\nAction Input: path: /' | tarsy inspect reply --tools host.df",
        ],
        "kind is final, action, unknown_tool or malformed. Absent parts are null; feedback is the text that the model \
         would get.",
    ),
    help(
        &["inspect", "stream"],
        &[
            "echo '{\"text\": {\"content\": \"The disk is full.\"}}' | tarsy inspect stream --controller synthesis",
        ],
        "A chunk is a GenerateResponse of proto/llm/v1/llm_service.proto with the names that its fields have there.",
    ),
    help(
        &["completions"],
        &[
            "source <(tarsy completions bash)",
            "tarsy completions fish | source",
        ],
        "Load it whenever a shell starts: the script asks the program at each Tab. Sessions come from the database of \
         DATABASE_URL, the newest first; without an answer within a second there are none.",
    ),
    help(
        &["man"],
        &[
            "tarsy man sessions list | man -l -",
            "tarsy man --directory ~/.local/share/man/man1",
        ],
        "",
    ),
];

const DECISIONS: &str = "\
Exit codes: 0 recorded, 3 recorded and it does not count, 75 sent and not recorded within 10 s: the stream keeps it.
The broker proves who you are, by the login in NATS_URL or its variables; the role is decider.";

const VERDICTS: &str = "\
The newest verdict counts, and none is changed or deleted. A wrong analysis covers no later alert.
Exit codes: 0 recorded, 75 sent and not recorded within 10 s: the stream keeps it. Of a refused verdict no row remains, \
so the exit code is 75, too; the log of the workers has the reason.
The broker proves who you are, by the login in NATS_URL or its variables; the role is decider.";

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 still running at --timeout,
            or a decision that does not count,
            4 a real model did not solve its drill,
            75 a decision is not recorded yet, 78 bad configuration,
            130 Ctrl-C (detaches, never cancels), 141 the output was closed

Every user of the machine can read a command line: an address with a password belongs in a variable or a file.";
