//! The transcripts, tools and configuration of a run.

use std::path::Path;
use std::time::Duration;

use super::odd::OddWorld;
use super::people;
use super::system::{ATTEMPTS, LEASE, MAX_ITERATIONS, SLOTS, WRAP_UP, session_timeout};
use crate::support::process::TARSY;

/// A tool that changes something; each call of it may be sent at most once.
pub(super) const CHANGING: &str = "restart";
/// The gate at which a deadly alert kills the worker that investigates it.
pub(super) const DEADLY_GATE: &str = "deadly";

/// The words by which an alert selects its recording.
pub(super) mod mark {
    pub(in super::super) const NATIVE: &str = "ChaosNative";
    pub(in super::super) const CHANGE: &str = "ChaosChange";
    pub(in super::super) const REACT: &str = "ChaosReact";
    pub(in super::super) const TEAM: &str = "ChaosTeam";
    pub(in super::super) const SLOW: &str = "ChaosSlow";
    pub(in super::super) const HASTY: &str = "ChaosHasty";
    pub(in super::super) const STUCK: &str = "ChaosStuck";
    pub(in super::super) const LONG: &str = "ChaosLong";
    pub(in super::super) const DEADLY: &str = "ChaosDeadly";
    pub(in super::super) const ODD: &str = "ChaosOdd";
    pub(in super::super) const LEAD: &str = "ChaosLead";
    pub(in super::super) const SKILL: &str = "ChaosSkill";
}

const EVIDENCE: &str = "
tools:
  look:
    description: Looks.
    read_only: true
    schema: {type: object}
    answers: [{file: result.txt, delay: 80ms}]
  search:
    description: Searches.
    read_only: true
    schema: {type: object}
    answers: [{file: result.txt, delay: 400ms}]
  restart:
    description: Restarts something.
    read_only: false
    schema: {type: object}
    answers: [{file: result.txt, delay: 250ms}]
";

/// A recorded call that contains its execution and iteration.
fn call(tool: &str, step: &str) -> String {
    call_of("chaos", tool, step)
}

/// The same call of the server without a tool that changes something.
fn of_reader(tool: &str, step: &str) -> String {
    call_of("reader", tool, step)
}

pub(super) fn call_of(server: &str, tool: &str, step: &str) -> String {
    format!("{{call: {{tool: {server}.{tool}, arguments: {{by: '{{execution}}', step: {step}}}}}}}")
}

pub(super) fn answer(chunks: &[&str], input: u32) -> String {
    format!(
        "  - {{chunks: [{}], usage: {{input: {input}, cached: 40, output: 21, thinking: 13}}}}\n",
        chunks.join(", ")
    )
}

pub(super) fn wait(ms: u32) -> String {
    format!("{{wait: {ms}ms}}")
}

pub(super) fn text(text: &str) -> String {
    format!("{{text: {text:?}}}")
}

/// Two skills: one for agents to load, and one that is a part of each prompt.
const SKILLS: [(&str, &str); 2] = [
    (
        "look-first",
        "---\nname: look-first\ndescription: Use it in a run of chaos\n---\nLook, then search.\n",
    ),
    (
        "house-rules",
        "---\nname: house-rules\ndescription: Rules of the house\n---\nName the time of each fact.\n",
    ),
];

pub(super) const END: &str = "Cause: a run of chaos. Evidence: none. Do next: nothing.";

fn transcripts() -> Vec<(&'static str, String)> {
    let end = text(END);
    let (look, search, change) = (
        |step: &str| call("look", step),
        |step: &str| call("search", step),
        |step: &str| call(CHANGING, step),
    );
    let written = |tool: &str, step: u32| {
        let input = format!("{{\"by\": \"{{execution}}\", \"step\": {step}}}");
        text(&format!(
            "Thought: step {step}\nAction: chaos.{tool}\nAction Input: {input}"
        ))
    };
    let native = [
        answer(
            &[
                "{thinking: 'first of all'}",
                &wait(300),
                &look("1"),
                &search("2"),
            ],
            100,
        ),
        answer(&[&text("one more"), &wait(500), &look("3")], 200),
        answer(&[&wait(300), &end], 300),
    ];
    let question = format!(
        "questions:\n  - match: why\n    answers:\n{}",
        indented(&answer(&[&wait(200), &end], 50))
    );
    let changing = [
        answer(
            &[
                &wait(200),
                &look("1"),
                &change("2"),
                &look("3"),
                &change("4"),
            ],
            110,
        ),
        answer(&[&wait(300), &change("5")], 210),
        answer(&[&wait(200), &end], 310),
    ];
    let react = [
        answer(&[&wait(200), &written("look", 1)], 120),
        answer(&[&wait(200), &text("I do not follow the format.")], 220),
        answer(&[&wait(200), &written(CHANGING, 2)], 320),
        answer(
            &[
                &wait(200),
                &text(&format!("Thought: enough\nFinal Answer: {END}")),
            ],
            420,
        ),
    ];
    let slow: String = (1..=5)
        .map(|step| answer(&[&wait(900), &look(&step.to_string())], 100))
        .collect();
    let long =
        answer(&[&wait(60), &look("'{n}'")], 100).replacen("{chunks", "{times: 40, chunks", 1);
    let long = long.replace("usage", &format!("conclusion: {{chunks: [{end}]}}, usage"));
    let hangs = answer(&["{hang: true}", &look("2")], 0)
        .replace("usage", &format!("conclusion: {{chunks: [{end}]}}, usage"));
    let member = [
        answer(&[&wait(400), &look("1")], 100),
        answer(&[&wait(300), &end], 200),
    ]
    .concat();
    let reviewer = [
        answer(&[&wait(400), &look("1"), &look("2")], 100),
        answer(
            &[&wait(300), &text("Verdict: weakened\nWhy: no evidence.")],
            200,
        ),
    ];
    let skilled = [
        answer(
            &[
                &wait(200),
                "{call: {tool: tarsy.load_skill, arguments: {names: [look-first]}}}",
                "{call: {tool: tarsy.past_investigations, arguments: {query: chaos}}}",
                &look("1"),
            ],
            100,
        ),
        answer(&[&wait(300), &search("2")], 200),
        answer(&[&wait(200), &end], 300),
    ];
    let dispatch = |agent: &str| {
        format!(
            "{{call: {{tool: tarsy.dispatch_agent, arguments: {{agent: {agent}, task: look at it}}}}}}"
        )
    };
    let lead = [
        answer(
            &[
                &wait(200),
                &look("1"),
                &dispatch("finds"),
                &dispatch("fails"),
                &change("2"),
            ],
            100,
        ),
        answer(&[&wait(200), &end], 200),
    ];
    let finds = [
        answer(
            &[
                &wait(400),
                &of_reader("look", "1"),
                &of_reader("search", "2"),
            ],
            60,
        ),
        answer(&[&wait(500), &of_reader("look", "3")], 70),
        answer(&[&wait(300), &text("Found: nothing.")], 80),
    ];
    let refused =
        "  - {chunks: [{text: never}], fail: {code: invalid_request, message: refused}}\n";
    let fails = format!(
        "{}{refused}",
        answer(&[&wait(300), &of_reader("look", "1")], 60)
    );
    vec![
        (
            mark::LEAD,
            format!("agent: lead\nanswers:\n{}", lead.concat()),
        ),
        (
            mark::LEAD,
            format!("agent: finds\nanswers:\n{}", finds.concat()),
        ),
        (mark::LEAD, format!("agent: fails\nanswers:\n{fails}")),
        (mark::SKILL, format!("answers:\n{}", skilled.concat())),
        (
            mark::NATIVE,
            format!("answers:\n{}{question}", native.concat()),
        ),
        (mark::CHANGE, format!("answers:\n{}", changing.concat())),
        (mark::REACT, format!("answers:\n{}", react.concat())),
        (mark::TEAM, format!("agent: left\nanswers:\n{member}")),
        (
            mark::TEAM,
            format!("agent: right\nanswers:\n{member}{}", answer(&[&end], 300)),
        ),
        (
            mark::TEAM,
            format!(
                "agent: synthesis\nanswers:\n{}",
                answer(&[&wait(300), &end], 400)
            ),
        ),
        (
            mark::TEAM,
            format!("agent: reviewer\nanswers:\n{}", reviewer.concat()),
        ),
        (
            mark::SLOW,
            format!("answers:\n{slow}{}", answer(&[&end], 900)),
        ),
        (
            mark::HASTY,
            format!("answers:\n{}{hangs}", answer(&[&look("1")], 100)),
        ),
        (
            mark::STUCK,
            format!(
                "answers:\n{}{}",
                answer(&[&look("1")], 100),
                answer(&["{hang: true}"], 0)
            ),
        ),
        (
            mark::LONG,
            format!("answers:\n{long}{}", answer(&[&end], 900)),
        ),
        (
            mark::DEADLY,
            format!(
                "answers:\n{}{}",
                answer(&[&look("1")], 100),
                answer(&[&format!("{{gate: {DEADLY_GATE}}}"), &end], 200)
            ),
        ),
    ]
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

/// Writes transcripts, evidence and configuration; returns the path of the configuration.
pub(super) fn write(directory: &Path, odd: &OddWorld) -> std::path::PathBuf {
    let (transcripts_in, evidence) = (directory.join("transcripts"), directory.join("evidence"));
    std::fs::create_dir(&transcripts_in).unwrap();
    std::fs::create_dir(&evidence).unwrap();
    let all = transcripts().into_iter().chain(people::recordings());
    for (number, (mark, rest)) in all.enumerate() {
        let text = format!("name: chaos-{number}\nmatch: {mark}\nprovider_state: true\n{rest}");
        std::fs::write(transcripts_in.join(format!("{number}.yaml")), text).unwrap();
    }
    let tools = format!("{EVIDENCE}{}", people::evidence());
    std::fs::write(evidence.join("evidence.yaml"), tools).unwrap();
    people::write_keys(directory);
    std::fs::write(evidence.join("result.txt"), "all is as it was\n").unwrap();
    let skills = directory.join("skills");
    std::fs::create_dir(&skills).unwrap();
    for (name, text) in SKILLS {
        std::fs::write(skills.join(format!("{name}.md")), text).unwrap();
    }
    let path = directory.join("tarsy.yaml");
    std::fs::write(&path, config(directory, &evidence, odd)).unwrap();
    path
}

fn config(directory: &Path, evidence: &Path, odd: &OddWorld) -> String {
    let seconds = |duration: Duration| duration.as_secs();
    format!(
        "llm_providers:
  scripted: {{provider: scripted, model: recording}}
  odd: {odd_provider}
mcp_servers:
  odd: {odd_server}
  chaos:
    # The first line of its output is no message.
    command: sh
    args: [-c, 'echo starting; exec \"$0\" \"$@\"', {TARSY}, evidence-server, {evidence}]
    env: {{TARSY_TOOL_CALLS_FILE: {calls}}}
    allow: [{CHANGING}]
  reader:
    command: {TARSY}
    args: [evidence-server, {evidence}]
    env: {{TARSY_TOOL_CALLS_FILE: {calls}}}
  guarded:
    command: {TARSY}
    args: [evidence-server, {evidence}]
    env: {{TARSY_TOOL_CALLS_FILE: {calls}}}
    {guarded}
agents:
  asks: {{mcp_servers: [guarded]}}
  asks-in-text: {{mcp_servers: [guarded], iteration_strategy: react}}
  waits: {{mcp_servers: [guarded]}}
  works: {{mcp_servers: [reader]}}
  native: {{}}
  lead: {{agents: [finds, fails]}}
  finds: {{description: Finds it., mcp_servers: [reader]}}
  fails: {{description: Fails., mcp_servers: [reader]}}
  scribe: {{iteration_strategy: react}}
  hasty: {{wrap_up: {hasty}s}}
  left: {{}}
  right: {{}}
  odd: {{mcp_servers: [odd], llm_provider: odd}}
  odd-scribe: {{mcp_servers: [odd], llm_provider: odd, iteration_strategy: react}}
agent_chains:
  native: {{default: true, stages: [{{name: look, agents: [{{name: native}}]}}]}}
  react: {{stages: [{{name: look, agents: [{{name: scribe}}]}}]}}
  hasty: {{stages: [{{name: look, agents: [{{name: hasty}}]}}]}}
  lead: {{stages: [{{name: look, agents: [{{name: lead}}]}}]}}
  team: {{review: {{when: [always]}}, iteration_timeout: 5s, stages: [{{name: look, agents: [{{name: left}}, {{name: right}}]}}]}}
  asks: {{stages: [{{name: look, agents: [{{name: asks}}]}}]}}
  asks-in-text: {{stages: [{{name: look, agents: [{{name: asks-in-text}}]}}]}}
  squad: {{stages: [{{name: look, agents: [{{name: waits}}, {{name: works}}]}}]}}
  odd: {{stages: [{{name: look, agents: [{{name: odd}}]}}]}}
  odd-react: {{stages: [{{name: look, agents: [{{name: odd-scribe}}]}}]}}
defaults:
  llm_provider: scripted
  mcp_servers: [chaos]
  max_iterations: {MAX_ITERATIONS}
  iteration_timeout: 10m
  wrap_up: {wrap_up}s
  required_skills: [house-rules]
skills:
  directories: [{skills}]
worker:
  lease: {lease}s
  slots: {SLOTS}
  attempts: {ATTEMPTS}
  sweep_interval: 2s
  drain_timeout: 10s
  session_timeout: {timeout}s
dedupe:
  cooldown: 0s
{approvals}",
        guarded = people::server(),
        approvals = people::configuration(directory),
        odd_provider = odd.provider_section(),
        odd_server = odd.server_section(),
        evidence = evidence.display(),
        skills = directory.join("skills").display(),
        wrap_up = seconds(WRAP_UP),
        hasty = seconds(session_timeout().saturating_sub(WRAP_UP)),
        calls = directory.join("tool_calls").display(),
        lease = seconds(LEASE),
        timeout = seconds(session_timeout()),
    )
}
