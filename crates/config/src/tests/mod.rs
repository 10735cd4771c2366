//! Tests of whole configuration files: values, defaults, output of `show`, faults.

mod runbooks;
mod servers;
mod streams;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::*;
use tarsy_core::plan::{
    NativeToolsMode, PastScope, Strategy, SuccessPolicy, Thinking, ThinkingLevel,
};

fn env(name: &str) -> Option<String> {
    (name == "K8S_TOKEN").then(|| "s3cret".to_owned())
}

fn faults(text: &str) -> String {
    Config::parse("tarsy.yaml", text, &env)
        .unwrap_err()
        .to_string()
}

#[test]
fn without_a_file_one_agent_investigates_everything_with_a_recording() {
    let config = Config::load(None, &env).unwrap();
    assert_eq!(
        config.llm_providers,
        BTreeMap::from([("scripted".to_owned(), LlmProvider::scripted())])
    );
    assert_eq!(config.mcp_servers, BTreeMap::new());
    assert_eq!(
        config.agents,
        BTreeMap::from([("sre".to_owned(), Agent::default())])
    );
    assert_eq!(
        config.agent_chains,
        BTreeMap::from([("default".to_owned(), AgentChain::of_agent("sre"))])
    );
    assert_eq!(config.worker, Worker::default());
    let settings = Settings {
        iteration_strategy: Some(Strategy::NativeThinking),
        llm_provider: Some("scripted".to_owned()),
        fallback_providers: None,
        native_tools: NativeTools::default(),
        mcp_servers: None,
        tools: None,
        skills: None,
        required_skills: Vec::new(),
        max_iterations: Some(20),
        iteration_timeout: Some(Duration::from_secs(120)),
        wrap_up: None,
        max_timeouts: Some(2),
        max_tool_result_tokens: Some(8_000),
        facts: Some(true),
        fold: Some(true),
        tables: Some(true),
        summarize_over: Some(0),
        summarize_with: None,
        max_tokens: Some(0),
        check_figures: Some(true),
        several_actions: Some(false),
        past: PastSettings {
            given: Some(3),
            days: Some(30),
            scope: Some(PastScope::Chain),
            tool: Some(true),
        },
    };
    assert_eq!(
        config.defaults,
        Defaults {
            chain: "default".to_owned(),
            success_policy: SuccessPolicy::Any,
            synthesis: Synthesis::default(),
            settings
        }
    );
}

#[test]
fn the_example_has_no_faults_and_only_default_worker_settings() {
    let config = Config::parse("example", EXAMPLE, &env).unwrap();
    assert_eq!(
        config.llm_providers["gemini"].backend(),
        Backend::GoogleNative
    );
    assert_eq!(config.llm_providers["local"].model, "qwen3:14b");
    assert!(!config.llm_providers["gemini"].keep_search_widget);
    assert!(
        config.llm_providers["gemini"]
            .generation
            .native_tools
            .enabled()
            .is_empty()
    );
    assert_eq!(
        config.agent_chains["kubernetes"].stages[0].agents[0]
            .settings
            .max_iterations,
        Some(12)
    );
    assert_eq!(config.worker, Worker::default());
    assert_eq!(config.defaults.chain, "kubernetes");
}

#[test]
fn the_example_names_every_key_that_is_shown() {
    let keys = |text: &str| -> BTreeSet<String> {
        let lines = text
            .lines()
            .map(|line| line.trim_start_matches([' ', '-', '#']));
        let keys = lines.filter_map(|line| Some(line.split_once(':')?.0.to_owned()));
        keys.filter(|key| !key.contains('$')).collect()
    };
    let shown = show(&Config::parse("example", EXAMPLE, &env).unwrap());
    assert_eq!(
        keys(&shown).difference(&keys(EXAMPLE)).collect::<Vec<_>>(),
        Vec::<&String>::new()
    );
}

#[test]
fn a_shown_configuration_loads_to_the_same_configuration() {
    for text in [
        "",
        EXAMPLE,
        "receive: {headers: [Tarsy-Chain]}\nrunbooks: {hosts: [wiki.example.com, '*.Example.com:8443'], private_hosts: [h]}\n\
         agent_chains: {a: {questions: {changes: true}, stages: [{agents: [{name: sre, tools: ['*.a$${']}]}]}}\nmcp_servers: {m: {command: c}}",
        "agent_chains: {a: {review: true, stages: [{agents: [{name: sre}]}]}, b: {review: {when: [always], \
         llm_provider: scripted}, stages: [{agents: [{name: sre}]}]}, c: {review: false, stages: [{agents: [{name: sre}]}]}}\ndefaults: {chain: a}",
        "agent_chains: {a: {success_policy: all, synthesis: {agent: sre}, stages: [{agents: [{name: sre}], replicas: 3, \
         synthesis: {iteration_strategy: synthesis}}]}}\ndefaults: {success_policy: all, synthesis: {llm_provider: scripted}}",
        "llm_service: {allow_key_env: ['TEAM_*', A], allow_base_url: ['*', 'http://h:8080/v1'], token_file: /t, \
         tls: {certificate: /c, key: /k, client_ca: /a}, concurrency: {google: 3, default: 5}, drain_timeout: 0s, \
         max_request_bytes: 1MiB, max_messages: 1, max_tools: 2}",
        "streams: {replicas: 3, alerts: {max_bytes: 1536MiB}, timeline: {max_age: 1h, max_bytes: 2GiB}, control: {max_age: 25h}}",
        "streams: {storage: file, placement: {cluster: a, tags: ['x$${']}, control: {storage: memory, placement: {tags: ['1']}}}",
        "llm_providers: {a: {provider: openai, model: 'm${X:-$}', context_window: 128k, base_url: 'http://x/$${', \
         api_key_env: K, price: {input: 2.0, output: 1e9, cached_input: 0.1}}}\n\
         masking: {variables: [A], files: ['1', 'a$${b', 'true', 'null', '- x', ' lead', 'trail ', ''], \
         patterns: ['CUST-[0-9]{6}', '[$${]b'], emails: true}\n\
         mcp_servers: {'true': {command: '${X:-1}', args: ['${A:-$}', \"x\\ny\"], env: {'2': '1'}}}\n\
         defaults: {mcp_servers: ['true'], iteration_strategy: ''}\nstreams: {dead_letters: {max_bytes: 1GiB}}",
        "llm_providers: {a: {provider: google, model: m, native_tools: {google_search: true, url_context: false}, \
         native_tools_mode: combine, thinking: {level: minimal}, max_output_tokens: 64k, max_output_tokens_after_cut: 128k, \
         temperature: 0.7, \
         project: example.com:p-1, location: europe-west4, credentials_env: C}, \
         b: {provider: openai, model: m, thinking: {budget: 0}, temperature: 2}}\n\
         defaults: {llm_provider: a, fallback_providers: [b], native_tools: {code_execution: true}}",
        &format!(
            "agents: {{a: {{instructions: {}}}}}",
            "long words ".repeat(500)
        ),
        "agents: {a: {instructions: \"say $${X}: 'yes'\\n# and\\n\"}}\nllm_providers: {'1': {provider: scripted, keep_search_widget: true}}",
    ] {
        let config = Config::parse("first", text, &env).unwrap();
        let shown = show(&config);
        assert_eq!(Config::parse("shown", &shown, &env), Ok(config), "{shown}");
    }
}

proptest::proptest! {
    #[test]
    fn any_text_in_a_shown_configuration_loads_again(text in "(\\PC|[\n\t$\\{}:#'\"-]){0,40}", name in "[a-zA-Z0-9 _.:-]{1,8}") {
        let mut config = Config::load(None, &env).unwrap();
        let program = McpProgram {
            command: Template::new("c"),
            args: vec![Template::new(text.replace('$', ""))],
            ..McpProgram::default()
        };
        let server = McpServer {
            transport: McpTransport::Stdio(program),
            about: name.clone(),
            scope: if name.len() % 2 == 1 { ServerScope::Session } else { ServerScope::Worker },
            required: name.len() % 2 == 1,
            tool_timeout: Duration::from_secs(1),
            max_tool_timeout: Duration::from_secs(2),
            max_concurrent_calls: 3,
            read_only: vec![text.clone()],
            approve: BTreeMap::new(),
            allow: vec![name.clone()],
            tools: (text.len() % 2 == 0).then(|| vec![name.clone()]),
            deny: vec![text.clone()],
            trust_hints: name.len() % 2 == 0,
            summarize_over: (name.len() % 3 == 0).then_some(5_000),
            facts: (name.len() % 3 == 1).then_some(false),
            fold: (name.len() % 3 == 0).then_some(true),
            tables: (name.len() % 2 == 0).then_some(false),
            probe: (name.len() % 2 == 0).then(|| {
                let arguments = serde_json::json!({"n": 5, "list": [true, 0.5, text.replace('$', "")]});
                ToolProbe { tool: name.clone(), arguments: arguments.as_object().unwrap().clone() }
            }),
        };
        config.mcp_servers.insert("s".to_owned(), server);
        let agent = Agent { instructions: text, ..Agent::default() };
        config.agents.insert(name, agent);
        config.agent_chains.get_mut("default").unwrap().alert_types = vec![config.agents.keys().next().unwrap().clone()];
        let shown = show(&config);
        proptest::prop_assert_eq!(Config::parse("shown", &shown, &env), Ok(config), "{}", shown);
    }
}

#[test]
fn a_configuration_is_described_in_one_line() {
    let config = Config::parse("example", EXAMPLE, &env).unwrap();
    assert_eq!(
        describe(&config),
        "1 chain, 1 agent, 3 providers, 1 MCP server"
    );
    assert_eq!(
        describe(&Config::load(None, &env).unwrap()),
        "1 chain, 1 agent, 1 provider, 0 MCP servers"
    );
}

#[test]
fn a_secret_is_neither_kept_nor_shown() {
    let config = Config::parse("example", EXAMPLE, &env).unwrap();
    let shown = show(&config);
    assert!(
        shown.contains("TOKEN: \"${K8S_TOKEN:-}\"") || shown.contains("TOKEN: ${K8S_TOKEN:-}"),
        "{shown}"
    );
    assert!(!format!("{config:?} {shown}").contains("s3cret"));
    assert_eq!(
        config.mcp_servers["k8s"].transport.program().unwrap().env["TOKEN"].resolve(&env),
        Ok("s3cret".to_owned())
    );
}

#[test]
fn all_faults_are_reported_at_once() {
    let text = "\
llm_providers:
  gemini: {provider: google, model: m, api_key_env: GEMINI_API_KEY}
  local: {provider: openai, model: m, base_url: ftp://x}
agents:
  sre:
    iteration_strategy: native-thinkin
    max_iteration: 3
  dba:
    iteration_strategy: react
agent_chains:
  k8s:
    stages:
      - agents:
          - name: sre
            llm_provider: gemnii
mcp_servers:
  prom:
    command: prom-mcp
    env:
      TOKEN: Bearer ${PROM_TOKEN}
worker: {slots: lots, lease: 30}
";
    insta::assert_snapshot!(faults(text));
}

#[test]
fn each_section_reports_what_it_accepts() {
    let cases = [
        "a: [1\n",
        "agents:\n\tsre: {}\n",
        "worker: {slots: 1}\nmasking: {}\nworker: {slots: 2}\n",
        "- a\n",
        "mcp_servers: {prom: {url: 'prom:8080', command: c}, b: {type: http2}}",
        "mcp_servers: {a.b: {}}",
        "mcp_servers: {a: {command: c, tools: get, deny: [1], trust_hints: maybe, denied: []}}",
        "llm_providers: {a: {provider: openai, backend: google-native, model: 4, transcript: x}}",
        "llm_providers: {a: {provider: openai, model: m, context_window: 128K}}",
        "llm_providers: {a: {provider: google, model: m, api_key_env: sk-12345}}",
        "llm_providers: {a: {provider: google, model: m, native_tools: {search: true, url_contxt: true, code_execution: 1}}}",
        "llm_providers: {a: {provider: google, model: m, native_tools: [google_search], native_tools_mode: both}}",
        "llm_providers: {a: {provider: google, model: m, thinking: {level: hgih, effort: 1}, temperature: 2.5}}",
        "llm_providers: {a: {provider: google, model: m, thinking: {level: low, budget: 1k}, max_output_tokens: 0}}",
        "llm_providers: {a: {provider: google, model: m, max_output_tokens: 8k, max_output_tokens_after_cut: 4k}, b: {provider: openai, model: m, max_output_tokens_after_cut: 8k}}",
        "llm_providers: {a: {provider: google, model: m, thinking: high, temperature: .nan, native_tool: {}}}",
        "llm_providers: {a: {provider: google, model: m, thinking: {budget: 2M}, location: 'eu/../x', credentials_env: /run/key.json}}",
        "llm_providers: {a: {provider: google, backend: genai, model: m, native_tools: {google_search: true}, project: 'P 1'}}",
        "llm_providers: {a: {provider: openai, model: m, native_tools: {google_search: true}, native_tools_mode: combine, project: p, location: global, credentials_env: C}}",
        "llm_providers: {a: {provider: scripted, thinking: {level: low}, max_output_tokens: 8k, temperature: 0}}",
        "llm_providers: {a: {provider: gogle, model: m, native_tools: {google_search: true}, project: p}}",
        "defaults: {native_tools: {google_serch: true}}",
        "llm_providers: {a: {provider: vllm, model: m}, b: {provider: bedrock, model: m, native_tools: {google_search: true}}}",
        "llm_providers: {a: {provider: scripted}, b: {provider: scripted}}",
        "defaults: {fallback_providers: [scriptde, scripted]}",
        "llm_providers: {a: {provider: scripted, price: {input: -1}}}",
        "agents: {a: {}, b: {}}",
        "agent_chains: {a: {}, b: {stages: []}}\ndefaults: {chain: a}",
        "agent_chains: {a: {default: true, alert_types: [X], stages: [{agents: [{name: sre}]}]}, b: {default: true, alert_types: [X], stages: [{agents: [{}]}]}}",
        "agent_chains: {a: {default: true, stages: [{agents: [{name: sre}]}]}, b: {stages: [{agents: [{name: sr}], success_policy: most}]}}\ndefaults: {chain: b}",
        "agent_chains: {a: {stages: [{agents: [{name: sre}, {name: sre}], replicas: 2}, {agents: [{name: sre}], replicas: 11}]}}",
        "agent_chains: {a: {stages: [{agents: [{name: sre}], synthesis: {agent: srre}}]}}",
        "defaults: {success_policy: al, synthesis: {iteration_strategy: synthesys, llm_provider: x, max_iterations: 3}}",
        "defaults: {mcp_servers: [k8s], iteration_timeout: 1ms}",
        "worker: {slots: 2, reserved_critical_slots: 2, max_alert_bytes: 1GB}",
        "worker: {sweep_interval: 11m}\ndedupe: {cooldown: 31d, cooldwn: 1h, on_resolved: cancle, on_acknowledged: 1}",
        "masking: {variables: ['hunter2!'], patterns: ['a(', 'x*', 'CUST-[0-9]+'], emails: 'on', pattern: x}",
        "worker: {lease: '${LEASE'}",
        "receive: {connections: 0, connections_per_adress: 3}",
        "streams: {replicas: 6, alerts: {max_age: 1h, max_bytes: 1KiB}, timeline: 3d, dead_letter: {}, control: {max_age: 1m}}",
        "streams: {storage: disk, placement: {}, alerts: {placement: [ssd]}, timeline: {storge: file, placement: {tag: ssd}}}",
        "wroker: {}",
        "receive: {headers: [Tarsy-Parent-Id, tarsy-chain, 7]}",
        "runbooks: {hosts: ['https://a.example/', 'a.example/x', 'u@a.example', '*']}",
        "agent_chains: {a: {questions: {changes: often, change: true}, stages: [{agents: [{name: sre}]}]}}",
    ];
    let reports: Vec<String> = cases.iter().map(|text| faults(text)).collect();
    insta::assert_snapshot!(reports.join("\n"));
}

#[test]
fn every_setting_of_a_model_is_read() {
    let text = "\
llm_providers:
  a:
    provider: google
    model: m
    native_tools: {google_search: true, url_context: false}
    native_tools_mode: combine
    thinking: {budget: 8k}
    max_output_tokens: 64k
    max_output_tokens_after_cut: 64k
    temperature: 0.5
    project: my-project-1
    location: global
    credentials_env: GOOGLE_CREDENTIALS
  b: {provider: anthropic, model: m, thinking: {level: high}, temperature: 1}
agents: {sre: {native_tools: {url_context: true}}}
defaults: {llm_provider: a}
";
    let config = Config::parse("f", text, &env).unwrap();
    let native_tools = NativeTools {
        google_search: Some(true),
        url_context: Some(false),
        ..NativeTools::default()
    };
    let a = Generation {
        native_tools,
        native_tools_mode: NativeToolsMode::Combine,
        thinking: Some(Thinking::Budget(8_000)),
        max_output_tokens: Some(64_000),
        max_output_tokens_after_cut: Some(64_000),
        temperature: Some(0.5),
    };
    let thinking = Some(Thinking::Level(ThinkingLevel::High));
    let b = Generation {
        thinking,
        temperature: Some(1.0),
        ..Generation::default()
    };
    let providers = &config.llm_providers;
    assert_eq!(
        (&providers["a"].generation, &providers["b"].generation),
        (&a, &b)
    );
    let vertex_ai = VertexAi {
        project: "my-project-1".to_owned(),
        location: "global".to_owned(),
        credentials_env: "GOOGLE_CREDENTIALS".to_owned(),
    };
    assert_eq!(
        (&providers["a"].vertex_ai, &providers["b"].vertex_ai),
        (&vertex_ai, &VertexAi::default())
    );
    let own = NativeTools {
        url_context: Some(true),
        ..NativeTools::default()
    };
    assert_eq!(config.agents["sre"].settings.native_tools, own);
}

#[test]
fn variables_fill_numbers_and_durations() {
    let config = Config::parse(
        "f",
        "worker: {slots: '${SLOTS:-7}', lease: '${LEASE:-3s}'}",
        &env,
    )
    .unwrap();
    assert_eq!(
        config.worker,
        Worker {
            slots: 7,
            lease: Duration::from_secs(3),
            ..Worker::default()
        }
    );
}

#[test]
fn the_cooldown_can_be_off_or_last_for_a_month() {
    for (text, hours) in [("0", 0), ("0s", 0), ("720h", 720)] {
        let config = Config::parse("f", &format!("dedupe: {{cooldown: {text}}}"), &env).unwrap();
        assert_eq!(
            config.dedupe,
            Dedupe {
                cooldown: Duration::from_hours(hours),
                ..Dedupe::default()
            }
        );
    }
    assert_eq!(
        Config::parse("f", "", &env).unwrap().dedupe.cooldown,
        Duration::from_hours(1)
    );
}

#[test]
fn a_webhook_may_set_descriptive_headers_unless_others_are_listed() {
    let headers = |text: &str| Config::parse("f", text, &env).unwrap().receive.headers;
    let describing = [
        "Tarsy-Alert-Type",
        "Tarsy-Title",
        "Tarsy-Runbook-Url",
        "Tarsy-Fingerprint",
        "Tarsy-Tenant",
        "traceparent",
    ];
    assert_eq!(headers(""), describing);
    assert_eq!(headers("receive: {}"), describing);
    assert_eq!(headers("receive: {headers: []}"), Vec::<String>::new());
    assert_eq!(
        headers("receive: {headers: [Tarsy-Title, Tarsy-Chain]}"),
        ["Tarsy-Title", "Tarsy-Chain"]
    );
}

#[test]
fn every_key_of_a_chain_is_read() {
    let text = "\
agent_chains:
  db:
    alert_types: [Replication]
    max_iterations: 5
    success_policy: any
    synthesis: {llm_provider: scripted}
    questions: {changes: true}
    stages:
      - name: look
        success_policy: all
        iteration_timeout: 30s
        agents: [{name: sre, iteration_strategy: \"\"}, {name: sre}]
        synthesis: {agent: sre, iteration_strategy: synthesis-native-thinking}
      - {replicas: 2, agents: [{name: sre}]}
";
    let chain = &Config::parse("f", text, &env).unwrap().agent_chains["db"];
    let agent = |strategy| StageAgent {
        name: "sre".to_owned(),
        settings: Settings {
            iteration_strategy: strategy,
            ..Settings::default()
        },
    };
    let stage = Stage {
        name: "look".to_owned(),
        success_policy: Some(SuccessPolicy::All),
        synthesis: Synthesis {
            agent: Some("sre".to_owned()),
            iteration_strategy: Some(Strategy::SynthesisNativeThinking),
            ..Synthesis::default()
        },
        settings: Settings {
            iteration_timeout: Some(Duration::from_secs(30)),
            ..Settings::default()
        },
        agents: vec![agent(Some(Strategy::SingleCall)), agent(None)],
        replicas: 1,
    };
    let twice = Stage {
        name: "stage-2".to_owned(),
        success_policy: None,
        synthesis: Synthesis::default(),
        settings: Settings::default(),
        agents: vec![agent(None)],
        replicas: 2,
    };
    let expected = AgentChain {
        description: String::new(),
        alert_types: vec!["Replication".to_owned()],
        success_policy: Some(SuccessPolicy::Any),
        synthesis: Synthesis {
            llm_provider: Some("scripted".to_owned()),
            ..Synthesis::default()
        },
        review: Review::default(),
        questions: Questions { changes: true },
        settings: Settings {
            max_iterations: Some(5),
            ..Settings::default()
        },
        stages: vec![stage, twice],
    };
    assert_eq!(chain, &expected);
}

#[test]
fn an_unreadable_file_is_one_fault() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("none.yaml");
    let error = Config::load(Some(&path), &env).unwrap_err();
    assert_eq!(error.faults.len(), 1);
    assert!(
        error
            .to_string()
            .contains("none.yaml: 1 fault\n  cannot be read: "),
        "{error}"
    );
}

#[test]
fn ages_and_pool_size_are_read_shown_and_validated() {
    let config = Config::load(None, &env).unwrap();
    assert_eq!(
        (config.database.pool_size, config.retention),
        (8, Retention::default())
    );
    let text = "database: {pool_size: 3}\nretention: {sessions: 90d, llm_interactions: 36h}\n";
    let config = Config::parse("tarsy.yaml", text, &env).unwrap();
    assert_eq!(config.database.pool_size, 3);
    assert_eq!(
        config.retention,
        Retention {
            sessions: Some(Duration::from_hours(90 * 24)),
            llm_interactions: Some(Duration::from_hours(36)),
            ..Retention::default()
        }
    );
    let shown = show(&config);
    assert!(
        shown.contains("pool_size: 3") && shown.contains("sessions: 90d"),
        "{shown}"
    );
    assert_eq!(Config::parse("shown", &shown, &env).unwrap(), config);
    let faults = faults("database: {pool_size: 0}\nretention: {session: 90d, alerts: 5m}\n");
    for part in [
        "database.pool_size",
        "did you mean sessions?",
        "retention.alerts",
        "(1h to 3650d)",
    ] {
        assert!(faults.contains(part), "no {part} in\n{faults}");
    }
}
