//! Successive alerts of one fingerprint: cooldown, force, a rise in severity, and resolution.

use std::time::Duration;

use serde_json::json;
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::{EventType, TimelineEvent};

use crate::support::system::{PROVEN, Setup, TestSystem};

const HOUR: Duration = Duration::from_secs(3_600);

/// An Alertmanager webhook with one alert, always of the same fingerprint.
fn webhook(status: &str, severity: &str) -> String {
    let alert = json!({
        "status": status, "labels": {"alertname": "DiskFull", "instance": "db-3", "severity": severity},
        "annotations": {"summary": "disk 94 % full"}, "startsAt": "2026-03-01T10:00:00Z",
        "endsAt": "0001-01-01T00:00:00Z", "generatorURL": "", "fingerprint": "5ef1",
    });
    json!({
        "version": "4", "groupKey": "{}:{alertname=\"DiskFull\"}", "truncatedAlerts": 0, "status": status,
        "receiver": "tarsy", "groupLabels": {"alertname": "DiskFull"}, "commonLabels": alert["labels"],
        "commonAnnotations": {}, "externalURL": "", "alerts": [alert],
    })
    .to_string()
}

/// Submits an alert with `tarsy submit`; returns its id.
async fn submit(system: &TestSystem, body: &str, more: &[&str]) -> SessionId {
    let file = system.file("alert.json");
    std::fs::write(&file, body).unwrap();
    let mut command = system.tarsy(
        "submit",
        &[&["submit", file.to_str().unwrap()], more].concat(),
    );
    let (code, id) = command.finished().await;
    assert_eq!(code, 0, "{}", command.log());
    SessionId::parse(id.trim()).unwrap()
}

async fn end_of(system: &TestSystem, session: SessionId) -> TimelineEvent {
    system.follow(session).await.finish().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_completed_investigation_covers_alerts_unless_forced_or_more_severe() {
    let system = TestSystem::start_with(Setup {
        cooldown: HOUR,
        transcripts: &[PROVEN],
        ..Setup::default()
    })
    .await;
    let (_worker, _) = system.worker("w1").await;
    let first = submit(&system, &webhook("firing", "warning"), &[]).await;
    assert_eq!(
        end_of(&system, first).await.event_type,
        EventType::SessionCompleted
    );
    let paid = system.model_calls();

    let second = submit(&system, &webhook("firing", "warning"), &[]).await;
    let joined = end_of(&system, second).await;
    assert_eq!(
        (joined.event_type.clone(), joined.session_seq),
        (EventType::Joined, 1)
    );
    assert_eq!(
        (
            &joined.metadata["joined_session_id"],
            &joined.metadata["reason"]
        ),
        (&json!(first), &json!("cooldown"))
    );
    let mut watch = system.tarsy("watch", &["watch", &second.to_string(), "--json"]);
    let (code, shown) = watch.finished().await;
    assert_eq!(code, 0, "{}", watch.log());
    let shown: Vec<TimelineEvent> = shown
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let stored = tarsy_engine::ports::Outbox::events(&system.database.store(), first, 0, 1000)
        .await
        .unwrap();
    assert_eq!(
        shown,
        [vec![joined], stored].concat(),
        "the watcher continues with the completed session"
    );
    assert_eq!(
        system.model_calls(),
        paid,
        "a covered alert causes no model call"
    );

    let forced = submit(&system, &webhook("firing", "warning"), &["--force"]).await;
    assert_eq!(
        end_of(&system, forced).await.event_type,
        EventType::SessionCompleted
    );
    let more_severe = submit(&system, &webhook("firing", "critical"), &[]).await;
    assert_eq!(
        end_of(&system, more_severe).await.event_type,
        EventType::SessionCompleted
    );
    // Now the session of the more severe alert covers both.
    let last = submit(&system, &webhook("firing", "warning"), &[]).await;
    assert_eq!(
        end_of(&system, last).await.metadata["joined_session_id"],
        json!(more_severe)
    );
    let sessions =
        "SELECT string_agg(session_id::text, ' ' ORDER BY created_at) FROM alert_sessions";
    assert_eq!(
        system.database.text(sessions),
        format!("{first} {forced} {more_severe}")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resolved_alert_joins_the_open_investigation_and_starts_none_after_its_end() {
    let watched = &["answer-0-middle"];
    let mut system = TestSystem::start_with(Setup {
        watched,
        cooldown: HOUR,
        ..Setup::default()
    })
    .await;
    let (_worker, _) = system.worker("w1").await;
    let first = submit(&system, &webhook("firing", "warning"), &[]).await;
    let held = system.gates.next().await;
    let mut timeline = system.follow(first).await;
    let resolved = submit(&system, &webhook("resolved", "warning"), &[]).await;
    let resolution = timeline.until(EventType::AlertResolved).await;
    assert_eq!(resolution.metadata["alert_id"], json!(resolved));
    let joined = end_of(&system, resolved).await;
    assert_eq!(
        (joined.event_type, &joined.metadata["joined_session_id"]),
        (EventType::Joined, &json!(first))
    );
    system.gates.open_all();
    held.open().await;
    assert_eq!(
        timeline.finish().await.event_type,
        EventType::SessionCompleted
    );
    let paid = system.model_calls();

    let late = submit(&system, &webhook("resolved", "warning"), &[]).await;
    let end = end_of(&system, late).await;
    assert_eq!(
        (end.event_type, end.session_seq),
        (EventType::SessionCompleted, 1)
    );
    assert_eq!(end.metadata["stop_reason"], "not_investigated");
    let mut watch = system.tarsy("watch", &["watch", &late.to_string()]);
    assert_eq!(watch.finished().await.0, 0, "{}", watch.log());
    assert_eq!(system.model_calls(), paid);
    assert_eq!(
        system
            .database
            .number("SELECT count(*) FROM alert_sessions"),
        1
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_joins_no_investigation_and_covers_no_alert() {
    let mut system = TestSystem::start_with(Setup {
        cooldown: HOUR,
        transcripts: &[PROVEN],
        ..Setup::default()
    })
    .await;
    let (_worker, _) = system.worker("w1").await;
    let first = submit(&system, &webhook("firing", "warning"), &[]).await;
    assert_eq!(
        end_of(&system, first).await.event_type,
        EventType::SessionCompleted
    );
    // Another session of the fingerprint stays open.
    system.gates.watch("answer-0-start");
    let open = submit(&system, &webhook("firing", "warning"), &["--force"]).await;
    let held = system.gates.next().await;
    system.gates.open_all();
    let mut ask = system.tarsy(
        "ask",
        &["ask", &first.to_string(), "Is it over?", "--no-watch"],
    );
    let (code, question) = ask.finished().await;
    assert_eq!(code, 0, "{}", ask.log());
    let question = SessionId::parse(question.trim()).unwrap();
    assert_eq!(
        end_of(&system, question).await.event_type,
        EventType::SessionCompleted
    );
    let joined = submit(&system, &webhook("firing", "warning"), &[]).await;
    assert_eq!(
        end_of(&system, joined).await.metadata["joined_session_id"],
        json!(open)
    );
    held.open().await;
    assert_eq!(
        end_of(&system, open).await.event_type,
        EventType::SessionCompleted
    );

    let mut ask = system.tarsy(
        "ask",
        &["ask", &first.to_string(), "Is it over now?", "--no-watch"],
    );
    let (code, last) = ask.finished().await;
    assert_eq!(code, 0, "{}", ask.log());
    let last = SessionId::parse(last.trim()).unwrap();
    assert_eq!(
        end_of(&system, last).await.event_type,
        EventType::SessionCompleted
    );
    let cooled = submit(&system, &webhook("firing", "warning"), &[]).await;
    assert_eq!(
        end_of(&system, cooled).await.metadata["joined_session_id"],
        json!(open),
        "the alert does not join the newer question"
    );
}
