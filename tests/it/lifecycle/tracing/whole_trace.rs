//! Tests of a whole trace, from the producer to the tool server.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use serde_json::{Value, json};

use super::{Traced, named, parent_of, trace_of};
use crate::support::http;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PRODUCER: &str = "00f067aa0ba902b7";
const SECRET: &str = "c0llector-k3y-value";

/// Each kind of span of the drill: service, name, kind, name of the parent, and how many there are.
const SPANS: [(&str, &str, SpanKind, &str, usize); 9] = [
    (
        "tarsy",
        "publish tarsy.alerts.critical",
        SpanKind::Producer,
        "-",
        1,
    ),
    (
        "tarsy-worker",
        "process tarsy.alerts.critical",
        SpanKind::Consumer,
        "publish tarsy.alerts.critical",
        1,
    ),
    (
        "tarsy-worker",
        "claim session",
        SpanKind::Internal,
        "process tarsy.alerts.critical",
        1,
    ),
    (
        "tarsy-worker",
        "run session",
        SpanKind::Internal,
        "process tarsy.alerts.critical",
        1,
    ),
    (
        "tarsy-worker",
        "invoke_agent sre",
        SpanKind::Internal,
        "run session",
        1,
    ),
    (
        "tarsy-worker",
        "iteration",
        SpanKind::Internal,
        "invoke_agent sre",
        4,
    ),
    (
        "tarsy-worker",
        "chat recording",
        SpanKind::Client,
        "iteration",
        4,
    ),
    (
        "tarsy-llm-service",
        "llm.v1.LLMService/Generate",
        SpanKind::Server,
        "chat recording",
        4,
    ),
    (
        "tarsy-worker",
        "execute_tool drill",
        SpanKind::Client,
        "iteration",
        5,
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_sees_one_trace_from_submit_to_the_tool_call() {
    let headers = format!("x-scope=acme, authorization=Bearer%20{SECRET}");
    let mut traced = Traced::start(&[], &[("OTEL_EXPORTER_OTLP_HEADERS", &headers)]).await;
    let mut worker = traced.worker("w1").await;
    let caller = format!("00-{TRACE}-{PRODUCER}-01");
    let session = traced.submit(&[("TRACEPARENT", &caller)], &[]).await;
    traced.completed(session).await;
    let spans = traced.ended(&mut [&mut worker]).await;

    let mut found: BTreeMap<(&str, String, &str), (SpanKind, usize)> = BTreeMap::new();
    for span in &spans {
        assert_eq!(span.trace_id, TRACE, "{span:?}");
        assert!(!span.failed && span.links.is_empty(), "{span:?}");
        // The names of the five tools differ.
        let name = if span.name.starts_with("execute_tool drill.") {
            "execute_tool drill"
        } else {
            &span.name
        };
        let entry = found
            .entry((&span.service, name.to_owned(), parent_of(&spans, span)))
            .or_insert((span.kind, 0));
        assert_eq!(entry.0, span.kind, "{span:?}");
        entry.1 += 1;
    }
    let expected = SPANS.map(|(service, name, kind, parent, count)| {
        ((service, name.to_owned(), parent), (kind, count))
    });
    assert_eq!(found, BTreeMap::from(expected));
    assert_eq!(named(&spans, "publish")[0].parent, PRODUCER);

    // The tool server got the trace, too, with the span of its call as the parent.
    let calls = std::fs::read_to_string(traced.system.file("tool_calls")).unwrap();
    let mut sent: Vec<String> = calls
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["traceparent"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    let mut expected: Vec<String> = named(&spans, "execute_tool")
        .iter()
        .map(|span| format!("00-{TRACE}-{}-01", span.id))
        .collect();
    sent.sort_unstable();
    expected.sort_unstable();
    assert_eq!(sent, expected);

    // Every text in the trace is from a closed set: nothing of the alert, the conversation or the tools.
    assert!(
        traced
            .collector
            .scopes()
            .iter()
            .all(|scope| scope == "acme")
            && !traced.collector.scopes().is_empty()
    );
    let text = format!("{spans:?}{}", worker.log());
    for word in [
        "checkout-api",
        "OOMKilled",
        "Investigate",
        "namespace",
        SECRET,
    ] {
        assert!(!format!("{spans:?}").contains(word), "{word} in {spans:#?}");
    }
    assert!(!text.contains(SECRET), "{text}");
    let chat = named(&spans, "chat")[0];
    assert_eq!(
        chat.attributes["gen_ai.conversation.id"],
        session.to_string()
    );
    assert_eq!(chat.attributes["gen_ai.provider.name"], "scripted");
    assert!(
        chat.attributes["gen_ai.usage.input_tokens"]
            .parse::<u32>()
            .unwrap()
            > 0
    );
    assert_eq!(
        named(&spans, "run session")[0].attributes["tarsy.run.end"],
        "completed"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_continues_the_trace_of_its_client_or_begins_one() {
    let mut traced = Traced::start(&[], &[]).await;
    let mut worker = traced.worker("w1").await;
    let mut receive = traced.spawn("receive", &["receive", "--listen", "127.0.0.1:0"]);
    let address = receive.ready().await;
    let alert = tarsy_drill::builtin("oom-killed").unwrap().alert;
    let hostile = "x".repeat(4_000);
    let own = format!("00-{TRACE}-{PRODUCER}-01");
    let unsampled = format!("00-{}-{PRODUCER}-00", TRACE.replace('4', "5"));
    let mut sessions = Vec::new();
    for traceparent in [own.as_str(), "00-1-2-01", &hostile, &unsampled] {
        let ready = async || {
            http::post(
                &address,
                "/alert",
                &[("traceparent", traceparent)],
                alert.as_bytes(),
            )
            .await
        };
        let mut answer = ready().await;
        while answer.status == 503 {
            answer = ready().await;
        }
        assert_eq!(answer.status, 202, "{answer:?}");
        let id = answer.json()["session_id"].as_str().unwrap().to_owned();
        let session = tarsy_core::ids::SessionId::parse(&id).unwrap();
        traced.completed(session).await;
        sessions.push(id);
    }
    let spans = traced.ended(&mut [&mut receive, &mut worker]).await;
    let mut traces = Vec::new();
    for id in &sessions {
        let of_session = |span: &&super::Span| span.attributes.get("tarsy.session_id") == Some(id);
        let of_session: Vec<_> = spans.iter().filter(of_session).collect();
        let Some(process) = of_session
            .iter()
            .find(|span| span.name.starts_with("process"))
        else {
            assert_eq!(of_session.len(), 0, "{of_session:?}");
            continue;
        };
        assert!(
            of_session
                .iter()
                .all(|span| span.trace_id == process.trace_id),
            "{of_session:#?}"
        );
        let publish = spans.iter().find(|span| span.id == process.parent).unwrap();
        let server = spans.iter().find(|span| span.id == publish.parent).unwrap();
        assert_eq!(
            (publish.kind, server.kind),
            (SpanKind::Producer, SpanKind::Server)
        );
        assert_eq!(
            (server.name.as_str(), server.service.as_str()),
            ("POST /alert", "tarsy-receive")
        );
        traces.push((server.trace_id.clone(), server.parent.clone()));
    }
    // The client of the last one asked for no recording.
    assert_eq!(traces.len(), 3, "{traces:?}");
    assert_eq!(traces[0], (TRACE.to_owned(), PRODUCER.to_owned()));
    assert!(
        traces[1].0 != TRACE && traces[1].0 != traces[2].0 && traces[1].1.is_empty(),
        "{traces:?}"
    );
    // The worker logs the trace of the last one all the same.
    let line = json!({"trace_id": TRACE.replace('4', "5")}).to_string();
    assert!(
        worker.log().contains(line.trim_matches(['{', '}'])),
        "{line}"
    );
    assert_ne!(
        traces[1].0,
        trace_of(tarsy_core::ids::SessionId::parse(&sessions[1]).unwrap())
    );
}
