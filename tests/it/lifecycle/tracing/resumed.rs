//! A resumed run and a question belong to the trace, or link to it.

use super::{Span, Traced, named, parent_of, trace_of};
use crate::support::wait::eventually;

/// Whether a worker has got a session in this span.
fn is_claim(span: &Span) -> bool {
    span.name == "claim session"
        && span
            .attributes
            .get("tarsy.claim.outcome")
            .is_some_and(|word| word == "taken")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resumed_run_is_in_the_same_trace_and_links_to_the_attempt_before() {
    let mut traced = Traced::start(&["tool-query_range-start"], &[]).await;
    let mut first = traced.worker("w1").await;
    let session = traced.system.publish().await;
    let arrived = traced.system.gates.next().await;
    // Exported before the kill: the claim of the first attempt, which the second one links to, and its finished calls.
    let claim = traced.collector.first("claim", is_claim).await;
    let calls = || named(&traced.collector.spans(), "chat").len();
    eventually("both finished calls are exported", async || calls() == 2).await;
    first.kill().await;
    traced.system.gates.open_all();
    arrived.open().await;
    let mut second = traced.worker("w2").await;
    traced.completed(session).await;
    let spans = traced.ended(&mut [&mut second]).await;

    // No producer has traced the alert: its trace has the id of the session.
    assert!(
        spans.iter().all(|span| span.trace_id == trace_of(session)),
        "{spans:#?}"
    );
    let [run] = named(&spans, "run session")[..] else {
        panic!("{spans:#?}")
    };
    assert_eq!(run.links, [format!("{}-{}", claim.trace_id, claim.id)]);
    let claims: Vec<_> = spans.iter().filter(|span| is_claim(span)).collect();
    assert_eq!(claims.len(), 2);
    assert_ne!(
        claims[0].parent, claims[1].parent,
        "each attempt has a consumer span of its own"
    );
    let process = spans.iter().find(|span| span.id == run.parent).unwrap();
    assert!(
        process.name.starts_with("process tarsy.alerts") && process.parent.is_empty(),
        "{process:?}"
    );
    // What the first attempt had finished is there, although its longer spans died with it.
    assert!(
        named(&spans, "chat")
            .iter()
            .any(|span| parent_of(&spans, span) == "-"),
        "{spans:#?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_links_to_the_investigation_that_it_is_about() {
    let mut traced = Traced::start(&[], &[]).await;
    let mut worker = traced.worker("w1").await;
    let root = traced.submit(&[], &[]).await;
    traced.completed(root).await;
    let id = root.to_string();
    let mut ask = traced.spawn("ask", &["ask", &id, "Was it the limit?", "--no-watch"]);
    let (code, out) = ask.finished().await;
    assert_eq!(code, 0, "{}", ask.log());
    let question = tarsy_core::ids::SessionId::parse(out.trim()).unwrap();
    traced.completed(question).await;
    let spans = traced.ended(&mut [&mut worker]).await;

    let claim = named(&spans, "claim session")
        .into_iter()
        .find(|span| span.trace_id == trace_of(root))
        .unwrap();
    let asked = |span: &&&Span| span.trace_id == trace_of(question);
    let runs = named(&spans, "run session");
    let run = runs.iter().find(asked).unwrap();
    assert_eq!(run.links, [format!("{}-{}", claim.trace_id, claim.id)]);
    let publish = named(&spans, "publish tarsy.questions");
    assert_eq!(publish.iter().filter(asked).count(), 1, "{spans:#?}");
}
