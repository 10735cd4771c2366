//! A provider's key leaves the LLM service only in the header of a request, whatever fails.
//!
//! Every failure has a key of its own. All of them happen in one system of real processes; then everything that the
//! system has stored, sent, logged and printed is searched for every key, also in encoded forms. In the suite each
//! failure happens at two of the four interfaces, in `./dev prove` at each of them.

mod forms;
mod provider;
mod streams;

use std::collections::BTreeSet;

use serde_json::json;
use tarsy_bus::{NewAlert, Priority, SESSION_ID};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;
use tarsy_llm::proto::llm_service_client::LlmServiceClient;
use tarsy_llm::proto::{ACCEPT_CODES, ConversationMessage, GenerateRequest, LlmConfig};
use tarsy_mask::Mask;
use uuid::Uuid;

use self::forms::{Search, SeededKey};
use self::provider::{FAILURES, REPEATS_RESULT};
use crate::safety::traces::{self, Overheard, Traces};
use crate::support::figures::is_proof;
use crate::support::http;
use crate::support::process::{TARSY, Tarsy};
use crate::support::system::{Setup, TestSystem};

/// Failures that need no answer of the provider: no server listens, and a variable that is no key.
const REFUSED: &str = "refused";
const NOT_PERMITTED: &str = "not-permitted";
/// A key in an address, which a configuration must not have.
const IN_ADDRESS: &str = "in-address";
/// Stands in places where the search has to find it.
const MARKER: &str = "marker-7f3a9c";

/// The providers whose interfaces are tried: Gemini, Responses, Messages and Chat Completions.
const APIS: [&str; 4] = ["google", "openai", "anthropic", "litellm"];

/// A key that no pattern of the mask knows, with characters that encodings change.
fn key(name: &str) -> SeededKey {
    let random = Uuid::new_v4().simple().to_string();
    let text = format!("seed+{}/{}=", &random[..12], &random[12..20]);
    assert!(
        Mask::default()
            .apply(&format!("it says {text} there"))
            .contains(&text)
    );
    SeededKey {
        name: name.to_owned(),
        text,
    }
}

fn variable(name: &str) -> String {
    let prefix = if name.ends_with(NOT_PERMITTED) {
        "OTHER"
    } else {
        "SEEDED"
    };
    format!("{prefix}_{}", name.replace('-', "_").to_uppercase())
}

fn model(api: &str) -> &'static str {
    match api {
        "google" => "gemini-3-flash-preview",
        "openai" => "gpt-5-mini",
        "anthropic" => "claude-sonnet-4-5",
        _ => "local",
    }
}

/// A provider and a chain of each name, which is `<api>-<failure>`.
fn config(names: &[String], address: &str, evidence: &str) -> String {
    let provider = |name: &String| {
        let (api, failure) = name.split_once('-').unwrap();
        let address = if failure == REFUSED {
            "127.0.0.1:1"
        } else {
            address
        };
        let version = if api == "google" { "" } else { "/v1" };
        json!({
            "provider": api, "model": model(api), "api_key_env": variable(name),
            "base_url": format!("http://{address}/{failure}{version}"),
        })
    };
    let chain = |name: &String| json!({"stages": [{"name": "look", "agents": [{"name": "sre"}]}], "llm_provider": name});
    let each = |value: &dyn Fn(&String) -> serde_json::Value| -> serde_json::Map<String, serde_json::Value> {
        names.iter().map(|name| (name.clone(), value(name))).collect()
    };
    json!({
        "llm_providers": each(&provider),
        "agent_chains": each(&chain),
        "agents": {"sre": {}},
        "defaults": {"chain": names[0], "llm_provider": names[0], "max_iterations": 2, "iteration_timeout": "10s", "max_timeouts": 1},
        "mcp_servers": {"leak": {"command": TARSY, "args": ["evidence-server", evidence]}},
        "masking": {"variables": [variable(&format!("google-{REPEATS_RESULT}"))]},
        "worker": {"lease": "2s", "slots": 96, "probe_models": false},
    })
    .to_string()
}

/// The failures at their interfaces, as `<api>-<failure>`: each failure at half of them, or at each in a proof.
fn names(failures: &[&str]) -> Vec<String> {
    // The test itself names these.
    let is_named = |api: &str, failure: &str| {
        api == "google" && ["cut", REFUSED, REPEATS_RESULT].contains(&failure)
    };
    let mut names = Vec::new();
    for (row, api) in APIS.iter().enumerate() {
        for (column, failure) in failures.iter().enumerate() {
            if is_proof() || (row + column) % 2 == 0 || is_named(api, failure) {
                names.push(format!("{api}-{failure}"));
            }
        }
    }
    names
}

/// A tool whose result contains a key.
fn evidence(system: &TestSystem, key: &str) -> String {
    let folder = system.file("leaking");
    std::fs::create_dir(&folder).unwrap();
    let tool = json!({
        "description": "Reads.", "read_only": true, "schema": {"type": "object"}, "answers": [{"file": "result"}],
    });
    std::fs::write(
        folder.join("evidence.yaml"),
        json!({"tools": {"read": tool}}).to_string(),
    )
    .unwrap();
    std::fs::write(
        folder.join("result"),
        format!("The configuration of the model: key {key}"),
    )
    .unwrap();
    folder.to_str().unwrap().to_owned()
}

async fn investigate(system: &TestSystem, chain: &str) -> SessionId {
    let session = SessionId(Uuid::now_v7());
    let headers =
        json!({SESSION_ID: session.to_string(), "Tarsy-Chain": chain, "Tarsy-Title": MARKER});
    let body = format!("disk full, {MARKER} {chain}").into_bytes();
    let alert = NewAlert {
        priority: Priority::Normal,
        suffix: None,
        body,
        headers,
    };
    system.connect().await.publish_alert(alert).await.unwrap();
    session
}

/// The answer to a foreign client whose request has a key in the address.
async fn asked_directly(address: &str, url: &str, key_variable: &str) -> String {
    let mut client = LlmServiceClient::connect(format!("http://{address}"))
        .await
        .unwrap();
    let message = ConversationMessage {
        role: "user".into(),
        content: "why?".into(),
        ..Default::default()
    };
    let config = LlmConfig {
        provider: "google".into(),
        model: "gemini-3-flash-preview".into(),
        api_key_env: key_variable.into(),
        base_url: url.into(),
        ..LlmConfig::default()
    };
    let request = GenerateRequest {
        messages: vec![message],
        llm_config: Some(config),
        accept: vec![ACCEPT_CODES.into()],
        ..GenerateRequest::default()
    };
    let mut stream = client.generate(request).await.unwrap().into_inner();
    let mut told = String::new();
    while let Ok(Some(response)) = stream.message().await {
        told.push_str(&format!("{response:?}\n"));
    }
    assert!(
        told.contains("error: ") || told.contains("Error("),
        "{told}"
    );
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seeded_key_is_nowhere_after_every_failure_of_a_provider() {
    let provider = provider::start().await;
    let failures = || {
        FAILURES
            .into_iter()
            .chain([REFUSED, NOT_PERMITTED, REPEATS_RESULT])
    };
    let names = names(&failures().collect::<Vec<_>>());
    let mut keys: Vec<SeededKey> = names.iter().map(|name| key(name)).collect();
    let in_address = key(IN_ADDRESS);
    let of = |name: &str| {
        keys.iter()
            .find(|key| key.name == name)
            .unwrap()
            .text
            .clone()
    };
    let in_result = of(&format!("google-{REPEATS_RESULT}"));

    let mut system = TestSystem::start_with(Setup::default()).await;
    let overheard = Overheard::start(&system).await;
    let evidence = evidence(&system, &in_result);
    std::fs::write(
        system.file("tarsy.yaml"),
        config(&names, &provider, &evidence),
    )
    .unwrap();
    let mut env: Vec<(String, String)> = keys
        .iter()
        .map(|key| (variable(&key.name), key.text.clone()))
        .collect();
    env.push(("NO_PROXY".to_owned(), "127.0.0.1".to_owned()));
    let env: Vec<(&str, &str)> = env
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let args = [
        "--listen",
        "127.0.0.1:0",
        "--allow-key-env",
        "SEEDED_*",
        "--allow-base-url",
        "http://127.0.0.1:*",
    ];
    let args = [&["llm-service"], &args[..], &["--log-level", "trace"]].concat();
    let mut service = Tarsy::spawn("service", &args, &env);
    let address = service.ready().await;
    let service_metrics = service
        .line_with("metrics ")
        .await
        .trim()
        .trim_start_matches("metrics ")
        .to_owned();

    let base = system.env(system.database.url());
    let mut worker_env = base.each().to_vec();
    let result_variable = variable(&format!("google-{REPEATS_RESULT}"));
    worker_env.extend([
        ("TARSY_LLM_ADDR", address.as_str()),
        (result_variable.as_str(), in_result.as_str()),
    ]);
    let mut worker = Tarsy::spawn(
        "worker",
        &["worker", "--name", MARKER, "--log-level", "trace"],
        &worker_env,
    );
    let worker_metrics = worker.ready().await;

    let mut timelines = Vec::new();
    for name in &names {
        timelines.push((name, system.follow(investigate(&system, name).await).await));
    }
    let mut ends = Vec::new();
    for (name, timeline) in &mut timelines {
        let end = timeline.finish().await;
        ends.push(format!(
            "{name}: {} {}",
            end.event_type,
            end.content.replace('\n', " ")
        ));
        assert!(
            end.event_type != EventType::SessionCompleted,
            "{name} has not failed: {end:?}"
        );
        assert!(
            !name.ends_with(REPEATS_RESULT) || end.content.contains("400"),
            "{name} got no result: {end:?}"
        );
    }
    println!("{}", ends.join("\n"));

    let url = format!("http://127.0.0.1:1/v1beta?key={}", in_address.text);
    let user = format!(
        "http://{}@127.0.0.1:1/",
        in_address.text.replace('/', "%2F")
    );
    let mut traces = Traces::new();
    for url in [&url, &user] {
        let told = asked_directly(&address, url, &variable("google-refused")).await;
        traces.push(("answer to a foreign client".to_owned(), told));
        let text =
            json!({"llm_providers": {"a": {"provider": "openai", "model": "m", "base_url": url}}})
                .to_string();
        std::fs::write(system.file("leaking.yaml"), text).unwrap();
        let file = system.file("leaking.yaml");
        let mut check = system.tarsy(
            "check",
            &["config", "check", "--config", file.to_str().unwrap()],
        );
        let (code, printed) = check.finished().await;
        assert_eq!(code, 78, "{printed}{}", check.log());
        traces.push((
            "check of a configuration".to_owned(),
            printed + &check.log(),
        ));
    }
    keys.push(in_address);

    for address in [&worker_metrics, &service_metrics] {
        traces.push((
            format!("metrics of {address}"),
            http::get(address, "/metrics").await.body,
        ));
    }
    for (name, process) in [
        ("worker", &mut worker),
        ("service", &mut service),
        ("unused service", &mut system.llm),
    ] {
        process.terminate();
        let (_, printed) = process.finished().await;
        let log = process.log();
        assert!(log.lines().count() < 20_000, "the log of {name} is cut");
        traces.extend([
            (format!("output of {name}"), printed),
            (format!("log of {name}"), log),
        ]);
    }
    traces.push(("core NATS".to_owned(), overheard.text()));
    traces.extend(traces::streams(&system).await);
    traces.extend(traces::tables(&system));

    let searched = |search: &Search| -> BTreeSet<String> {
        traces
            .iter()
            .flat_map(|(place, text)| search.find(place, text))
            .collect()
    };
    let marker = SeededKey {
        name: "marker".to_owned(),
        text: MARKER.to_owned(),
    };
    let places = searched(&Search::of(&[marker]));
    for place in [
        "core NATS",
        "stream TARSY_TIMELINE",
        "log of worker",
        "column public.entries.content",
    ] {
        assert!(
            places.iter().any(|found| found.starts_with(place)),
            "the marker is not in {place}: {places:#?}"
        );
    }
    let names = SeededKey {
        name: "name".to_owned(),
        text: "google-cut".to_owned(),
    };
    let places = searched(&Search::of(&[names]));
    for place in ["metrics of", "column public.llm_interactions"] {
        assert!(
            places.iter().any(|found| found.starts_with(place)),
            "the name is not in {place}: {places:#?}"
        );
    }
    assert_eq!(searched(&Search::of(&keys)), BTreeSet::new());
}
