//! Secrets enter the system through every port; none is in what it stores, sends or logs.
//!
//! The suite uses every fourth secret, `./dev prove` all of them, and `TARSY_SECRETS_STEP` sets another step. The tests
//! of the mask use all of them in every layout.

mod environment;
mod rotation;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tarsy_bus::{NewAlert, Priority, SESSION_ID, TimelineUpdate};
use tarsy_core::ids::SessionId;
use tarsy_core::search::Literal;
use tarsy_core::timeline::EventType;
use tarsy_mask::Mask;
use tarsy_reports::EventSearch;
use uuid::Uuid;

use crate::safety::seed_search::SeedSearch;
use crate::support::figures::by_depth;
use crate::support::grpc_recorder::GrpcRecorder;
use crate::support::http;
use crate::support::process::{TARSY, Tarsy};
use crate::support::seeds::{Seed, readings, seeds};
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually;

/// A value that the configuration names as a secret, and that no pattern matches.
const KNOWN: &str = "plain.words.of.the.operator";

/// The seeds that the mask recognises without context. The tests of the mask cover the others.
fn known_seeds() -> Vec<Seed> {
    let mask = Mask::default();
    let is_known = |seed: &Seed| {
        let once = json!({"samples": [seed.text]}).to_string();
        let twice = json!({"event": once}).to_string();
        let forms = [seed.text.clone(), format!("{once:?}"), once, twice];
        forms
            .iter()
            .all(|form| seed.shown_in(&mask.apply(form)).is_none())
    };
    let alone: Vec<Seed> = seeds().into_iter().filter(is_known).collect();
    // The seeds also have to be recognised when they stand one after the other.
    let samples = json!({"samples": texts(&alone)}).to_string();
    let together = [
        markdown(&alone),
        samples.clone(),
        json!({"event": samples}).to_string(),
        format!("{samples:?}"),
    ];
    let together = together.map(|text| mask.apply(&text).into_owned());
    let search = SeedSearch::new(&alone);
    let shown: BTreeSet<String> = together
        .iter()
        .flat_map(|text| search.names(&readings(text)))
        .map(str::to_owned)
        .collect();
    alone
        .into_iter()
        .filter(|seed| !shown.contains(&seed.name))
        .collect()
}

/// The seeds that fit into a header, and that are recognised in an error text about this header.
fn of_headers(seeds: &[Seed]) -> Vec<&Seed> {
    let mask = Mask::default();
    let fits = |seed: &&Seed| {
        let line =
            seed.text.len() < 400 && seed.text.chars().all(|c| c == ' ' || c.is_ascii_graphic());
        let cited = format!("header Tarsy-Chain names {:?}; defined: default", seed.text);
        line && seed.shown_in(&mask.apply(&cited)).is_none()
    };
    seeds.iter().filter(fits).collect()
}

fn texts(seeds: &[Seed]) -> Vec<String> {
    seeds
        .iter()
        .map(|seed| seed.text.clone())
        .chain([format!("it is {KNOWN} there")])
        .collect()
}

/// One code block per seed, as models write them. `[[` is split, because it would be a citation in a recording.
fn markdown(seeds: &[Seed]) -> String {
    let block = |text: String| {
        format!(
            "It printed:\n\n```text\n{}\n```\n\nThen it ended.\n\n",
            text.replace("[[", "[ [")
        )
    };
    texts(seeds).into_iter().map(block).collect()
}

/// A model that repeats every secret in each kind of content, after a provider error that contains them, too.
fn transcript(seeds: &[Seed]) -> String {
    let found = texts(seeds);
    let call = |tool: &str| json!({"call": {"tool": format!("leak.{tool}"), "arguments": {"samples": found}}});
    let first = json!({
        "fail": {"code": "max_retries", "message": format!("GET failed:\n\n{}", markdown(seeds)), "times": 1},
        "chunks": [
            {"thinking": markdown(seeds)}, {"text": markdown(seeds)},
            {"code": {"code": format!("print({})", json!(found)), "language": "PYTHON"}},
            {"code_result": {"result": json!({"samples": found}).to_string(), "outcome": "OUTCOME_OK"}},
            {"grounding": {"queries": found, "sources": [{"uri": "https://h/", "title": KNOWN}], "search_widget": KNOWN}},
            call("read"), call("broken"),
        ],
    });
    let last = json!({"chunks": [{"text": format!("Cause: found [[*]].\n\n{}", markdown(seeds))}]});
    json!({"name": "leak", "match": "KubeLeak", "answers": [first, last]}).to_string()
}

/// Tools whose descriptions, schemas, results and errors contain every secret.
fn evidence(folder: &std::path::Path, seeds: &[Seed]) {
    let properties: serde_json::Map<String, Value> = texts(seeds)
        .into_iter()
        .zip(0..)
        .map(|(text, n)| (format!("p{n}"), json!({"description": text})))
        .collect();
    let tool = |is_error: bool| {
        json!({
            "description": format!("Reads {KNOWN} with {}", seeds[0].text), "read_only": true,
            "schema": {"type": "object", "properties": properties},
            "answers": [{"file": "result", "is_error": is_error}],
        })
    };
    let index = json!({"tools": {"read": tool(false), "broken": tool(true)}});
    std::fs::write(folder.join("evidence.yaml"), index.to_string()).unwrap();
    std::fs::write(
        folder.join("result"),
        json!({"samples": texts(seeds)}).to_string(),
    )
    .unwrap();
}

fn config(system: &TestSystem) -> String {
    let (folder, calls) = (system.file("leaking"), system.file("tool_calls"));
    json!({
        "mcp_servers": {"leak": {
            "command": TARSY, "args": ["evidence-server", folder], "env": {"TARSY_TOOL_CALLS_FILE": calls, "LEAK": "${LEAK}"},
        }},
        "worker": {"lease": "2s", "slots": 8},
    })
    .to_string()
}

/// Everything that the system has stored, sent and logged, by its origin.
struct Traces(Vec<(&'static str, String)>);

impl Traces {
    /// Every secret in plain text, also within JSON or JSON within JSON, with its origin.
    fn of(&self, seeds: &[Seed]) -> BTreeSet<String> {
        let unescaped = |text: &str| {
            text.replace("\\\\", "\u{0}")
                .replace("\\\"", "\"")
                .replace("\\n", "\n")
                .replace('\u{0}', "\\")
        };
        let search = SeedSearch::new(seeds);
        let mut found = BTreeSet::new();
        for (place, text) in &self.0 {
            let once = unescaped(text);
            let readings = [text.clone(), unescaped(&once), once];
            let shown = search.excerpts(&readings).into_iter();
            found.extend(shown.map(|(name, excerpt)| format!("{place}: {name}: {excerpt}")));
            if readings.iter().any(|reading| reading.contains(KNOWN)) {
                found.insert(format!("{place}: a known value"));
            }
        }
        found
    }
}

/// Every row of every table.
fn dump(system: &TestSystem) -> String {
    let tables = system.database.text(
        "SELECT string_agg(table_name, ' ') FROM information_schema.tables WHERE table_schema = 'public' AND \
         table_type = 'BASE TABLE'",
    );
    assert!(tables.split(' ').count() > 8, "{tables}");
    let rows = |table: &str| {
        system.database.text(&format!(
            "SELECT coalesce(string_agg(to_jsonb(t)::text, E'\\n'), '') FROM {table} t"
        ))
    };
    tables.split(' ').map(rows).collect()
}

/// All messages of a stream.
async fn stream(
    system: &TestSystem,
    name: &str,
) -> Vec<async_nats::jetstream::message::StreamMessage> {
    let jetstream = system.jetstream().await;
    let mut stream = jetstream.get_stream(name).await.unwrap();
    let state = stream.info().await.unwrap().state.clone();
    let mut all = Vec::new();
    for sequence in state.first_sequence..=state.last_sequence {
        if let Ok(message) = stream.get_raw_message(sequence).await {
            all.push(message);
        }
    }
    all
}

async fn publish(system: &TestSystem, headers: Value, body: &str) -> SessionId {
    let session = SessionId(Uuid::now_v7());
    let mut all = json!({SESSION_ID: session.to_string()});
    all.as_object_mut()
        .unwrap()
        .extend(headers.as_object().unwrap().clone());
    let alert = NewAlert {
        priority: Priority::Normal,
        suffix: None,
        body: body.as_bytes().to_vec(),
        headers: all,
    };
    system.connect().await.publish_alert(alert).await.unwrap();
    session
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_from_every_input_are_in_no_dump_stream_log_prompt_or_metric() {
    let step = by_depth("TARSY_SECRETS_STEP", 4, 1);
    let known = known_seeds();
    assert!(known.len() >= 300, "{}", known.len());
    let seeds: Vec<Seed> = known.into_iter().step_by(step).collect();
    let in_headers = of_headers(&seeds);
    assert!(in_headers.len() >= 100 / step, "{}", in_headers.len());
    let system = TestSystem::start_with(Setup {
        transcript: Some(transcript(&seeds)),
        ..Setup::default()
    })
    .await;
    std::fs::create_dir(system.file("leaking")).unwrap();
    evidence(&system.file("leaking"), &seeds);
    std::fs::write(system.file("tarsy.yaml"), config(&system)).unwrap();
    let recorder = GrpcRecorder::before(system.llm_addr()).await;
    let environment = system.env(system.database.url());
    let mut environment = environment.each().to_vec();
    environment.extend([
        ("TARSY_LLM_ADDR", recorder.address()),
        ("LEAK", KNOWN),
        ("OPERATOR_PASSWORD", KNOWN),
    ]);
    let mut worker = Tarsy::spawn("worker", &["worker", "--log-level", "trace"], &environment);
    let metrics = worker.ready().await;

    let body = json!({
        "alertname": "KubeLeak", "groupKey": seeds[0].text, "samples": texts(&seeds),
        "annotations": {"runbook_url": format!("https://u:{}@h/r", "w0rd-0f-the-runb00k")},
    });
    let headers = json!({"Tarsy-Title": in_headers[0].text, "traceparent": in_headers[1].text});
    let session = publish(&system, headers, &body.to_string()).await;
    let mut timeline = system.follow(session).await;
    let mut live = String::new();
    while let Some(item) = timeline.next().await {
        if let TimelineUpdate::Delta(delta) = item {
            live.push_str(&delta.delta);
        }
    }
    assert_eq!(
        timeline.seen.last().unwrap().event_type,
        EventType::SessionCompleted,
        "{:#?}",
        timeline.seen.last()
    );
    for seed in &in_headers {
        let named = format!("none {}", seed.text);
        let headers = json!({
            "Tarsy-Chain": named, "Tarsy-Title": seed.text, "Tarsy-Fingerprint": seed.text, "traceparent": seed.text,
            "Tarsy-Runbook-Url": format!("https://h/?x={}", seed.text), "Tarsy-Alert-Type": seed.text,
        });
        publish(&system, headers, &seed.text).await;
    }
    system.queue_is_empty().await;
    let unsettled = "SELECT count(*) FROM alerts WHERE settled_at IS NULL";
    eventually("every alert is settled", async || {
        system.database.number(unsettled) == 0
    })
    .await;

    let letters = stream(&system, "TARSY_DEAD_LETTERS").await;
    assert_eq!(letters.len(), in_headers.len());
    let is_raw = |seed: &&&Seed| letters.iter().any(|letter| letter.payload == seed.text);
    assert_eq!(
        in_headers.iter().filter(is_raw).count(),
        letters.len(),
        "a dead letter keeps its body, so that it can be queued again"
    );
    let details = letters
        .iter()
        .map(|letter| letter.headers.get("Tarsy-Dead-Detail").unwrap().as_str());
    let events = stream(&system, "TARSY_TIMELINE").await.into_iter();
    let list = ["dead-letters", "list", "--json", "--limit", "1000"];
    let listed = Tarsy::spawn("letters", &list, &environment)
        .finished()
        .await;
    assert_eq!((listed.0, listed.1.lines().count()), (0, in_headers.len()));
    let traces = Traces(vec![
        ("dump", dump(&system)),
        (
            "timeline",
            events
                .map(|event| String::from_utf8_lossy(&event.payload).into_owned())
                .collect(),
        ),
        ("live text", live),
        (
            "dead letters' details",
            details.collect::<Vec<_>>().join("\n"),
        ),
        ("dead letters' list", listed.1),
        ("log of the worker", worker.log()),
        ("log of the llm-service", system.llm.log()),
        ("prompts", recorder.sent()),
        ("metrics", http::get(&metrics, "/metrics").await.body),
    ]);
    for (place, holds) in [
        ("dump", "KubeLeak"),
        ("prompts", "KubeLeak"),
        ("live text", "Then it ended"),
        ("timeline", "[masked]"),
    ] {
        let (_, text) = traces.0.iter().find(|(name, _)| *name == place).unwrap();
        assert!(text.contains(holds), "{place} does not contain {holds}");
    }
    assert_eq!(traces.of(&seeds), BTreeSet::new());
    assert!(
        !traces
            .0
            .iter()
            .any(|(_, text)| text.contains("w0rd-0f-the-runb00k"))
    );
    for (text, is_found) in [("[masked]", true), (KNOWN, false)] {
        let search = EventSearch {
            session,
            after: 0,
            limit: 1,
            text: Literal::parse(text).unwrap().unwrap(),
        };
        let found = system.database.store().search_events(search).await.unwrap();
        assert_eq!(!found.events.is_empty(), is_found, "{text}");
    }
    let sent = std::fs::read_to_string(system.file("tool_calls")).unwrap();
    assert!(
        sent.contains(KNOWN),
        "a tool gets the arguments as the model wrote them"
    );
    assert_eq!(
        system
            .database
            .number("SELECT count(*) FROM alerts WHERE raw IS NOT NULL"),
        0
    );
}
