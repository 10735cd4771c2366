//! Tests of the effect of an alert's status on its running investigation, with incidents of PagerDuty.

use serde_json::{Value, json};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::{EventType, TimelineEvent};

use super::{AGENTS, HOUR, NOTICE, entries, join, publish, start_with, worker};
use crate::support::system::TestSystem;

/// In the request after the resolution of second 30.
const OVER: &str = "```text\nthe alert is resolved since 2026-10-02T19:20:30Z\n";

/// An event of one incident at this second.
fn incident(event: &str, second: u32) -> String {
    json!({"event": {
        "id": format!("{event}{second}"), "event_type": format!("incident.{event}"), "resource_type": "incident",
        "occurred_at": format!("2026-10-02T19:20:{second:02}Z"),
        "data": {
            "id": "PGR0VU2", "type": "incident", "incident_key": "k1", "title": "Node n1 is down", "urgency": "high",
            "service": {"id": "PF9KMXH", "summary": "Node", "type": "service_reference"},
        },
    }})
    .to_string()
}

async fn end_of(system: &TestSystem, id: SessionId) -> TimelineEvent {
    system.follow(id).await.finish().await
}

fn count(seen: &[TimelineEvent], event_type: EventType) -> usize {
    seen.iter()
        .filter(|event| event.event_type == event_type)
        .count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resolved_incident_is_sent_and_what_is_older_is_only_noted() {
    let (mut system, recorder) = start_with(&["asked"], HOUR, AGENTS).await;
    let _worker = worker(&system, &recorder, "w1").await;
    let session = publish(&system, &incident("triggered", 10), "native").await;
    let held = system.gates.next().await;
    for second in [12, 13] {
        join(&system, &incident("acknowledged", second)).await;
    }
    join(&system, &incident("escalated", 20)).await;
    let outdated = join(&system, &incident("resolved", 15)).await;
    assert_eq!(
        (
            &outdated.metadata["outdated"],
            outdated.metadata.get("update")
        ),
        (&json!(true), None)
    );
    join(&system, &incident("resolved", 30)).await;
    system.gates.open_all();
    held.open().await;
    let mut timeline = system.follow(session).await;
    let end = timeline.finish().await;
    assert_eq!(
        (end.event_type, &end.metadata["stop_reason"]),
        (EventType::SessionCompleted, &json!("final_answer"))
    );
    let sent = recorder.sent();
    assert_eq!(
        (sent.matches(NOTICE).count(), sent.matches(OVER).count()),
        (1, 1),
        "{sent}"
    );
    let seen = &timeline.seen;
    let counts = [
        EventType::AlertAcknowledged,
        EventType::AlertJoined,
        EventType::AlertResolved,
        EventType::AlertUpdated,
    ];
    assert_eq!(
        (
            counts.map(|event_type| count(seen, event_type)),
            entries(&system)
        ),
        ([1, 2, 1, 1], 1)
    );
    system.assert_invariants(session, seen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resolved_incident_forces_the_conclusion_if_operators_want_it() {
    for chain in ["native", "react"] {
        let sections = format!("  on_resolved: conclude\n{AGENTS}");
        let (mut system, recorder) = start_with(&["asked"], HOUR, &sections).await;
        let mut first = worker(&system, &recorder, "w1").await;
        let session = publish(&system, &incident("triggered", 10), chain).await;
        let held = system.gates.next().await;
        join(&system, &incident("resolved", 30)).await;
        first.kill().await;
        system.gates.open_all();
        drop(held);
        let _second = worker(&system, &recorder, "w2").await;
        let mut timeline = system.follow(session).await;
        let end = timeline.finish().await;
        let ended = (end.event_type, &end.metadata["stop_reason"]);
        assert_eq!(
            ended,
            (EventType::SessionCompleted, &json!("alert_resolved")),
            "{chain}"
        );
        let facts = "SELECT string_agg(kind, ' ' ORDER BY entry_no) FROM entries WHERE kind IN ('stopped', 'concluding')";
        assert_eq!(system.database.text(facts), "stopped concluding");
        system.assert_invariants(session, &timeline.seen).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resolved_incident_cancels_its_investigation_if_operators_want_it() {
    let sections = format!("  on_resolved: cancel\n{AGENTS}");
    let (mut system, recorder) = start_with(&["asked"], HOUR, &sections).await;
    let _worker = worker(&system, &recorder, "w1").await;
    let session = publish(&system, &incident("triggered", 10), "native").await;
    let held = system.gates.next().await;
    join(&system, &incident("resolved", 5)).await;
    join(&system, &incident("resolved", 30)).await;
    // The model never answers.
    let mut timeline = system.follow(session).await;
    let end = timeline.finish().await;
    assert_eq!(end.event_type, EventType::SessionCancelled);
    assert_eq!(
        end.content,
        "Investigation cancelled: its alert is resolved"
    );
    assert_eq!(
        (
            &end.metadata["cancel_reason"],
            end.metadata.get("cancelled_by")
        ),
        (&json!("alert_resolved"), None)
    );
    system.gates.open_all();
    drop(held);
    let again = publish(&system, &incident("reopened", 40), "native").await;
    assert_eq!(
        end_of(&system, again).await.event_type,
        EventType::SessionCompleted,
        "it is investigated again"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acknowledged_incident_and_a_test_end_at_once() {
    let (system, recorder) = start_with(&[], HOUR, AGENTS).await;
    let _worker = worker(&system, &recorder, "w1").await;
    let ping = json!({"event": {
        "id": "p", "event_type": "pagey.ping", "resource_type": "pagey", "occurred_at": "2026-10-02T19:20:00Z",
        "data": {"message": "Hello from your friend Pagey!", "type": "ping"},
    }});
    for (body, content) in [
        (
            incident("acknowledged", 12),
            "acknowledged: a person has it",
        ),
        (ping.to_string(), "test of pagerduty arrived"),
    ] {
        let id = publish(&system, &body, "native").await;
        let end = end_of(&system, id).await;
        assert_eq!(
            (end.event_type, end.content.as_str()),
            (EventType::SessionCompleted, content)
        );
        assert_eq!(end.metadata["stop_reason"], "not_investigated");
        let mut show = system.tarsy("sessions", &["sessions", "show", &id.to_string(), "--json"]);
        let (code, shown) = show.finished().await;
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(
            (code, &shown["place"], &shown["dead_detail"]),
            (0, &json!("ended"), &json!(content))
        );
    }
    assert_eq!(
        (
            system.model_calls().len(),
            system
                .database
                .number("SELECT count(*) FROM alert_sessions")
        ),
        (0, 0)
    );
}
