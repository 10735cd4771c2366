//! Alerts of one fingerprint after another: cooldown, force, a rise in severity, and the end of the trouble.

use std::time::Duration;

use serde_json::json;
use tarsy::investigation::ids::SessionId;
use tarsy::investigation::timeline::{EventType, TimelineEvent};

use crate::support::stage::{Setup, Stage};

const HOUR: Duration = Duration::from_secs(3_600);

/// An Alertmanager webhook of one alert; always of the same fingerprint.
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

/// `tarsy submit`; the id of the alert.
async fn submit(stage: &Stage, (status, severity): (&str, &str), more: &[&str]) -> SessionId {
    let file = stage.file("alert.json");
    std::fs::write(&file, webhook(status, severity)).unwrap();
    let mut command = stage.tarsy("submit", &[&["submit", file.to_str().unwrap()], more].concat());
    let (code, id) = command.finished().await;
    assert_eq!(code, 0, "{}", command.log());
    SessionId::parse(id.trim()).unwrap()
}

async fn end_of(stage: &Stage, session: SessionId) -> TimelineEvent {
    stage.follow(session).await.finish().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_completed_investigation_answers_for_an_hour_unless_forced_or_outdone() {
    let stage = Stage::set_up(Setup { cooldown: HOUR, ..Setup::default() }).await;
    let (_worker, _) = stage.worker("w1").await;
    let first = submit(&stage, ("firing", "warning"), &[]).await;
    assert_eq!(end_of(&stage, first).await.event_type, EventType::SessionCompleted);
    let paid = stage.model_calls();

    let second = submit(&stage, ("firing", "warning"), &[]).await;
    let joined = end_of(&stage, second).await;
    assert_eq!((joined.event_type.clone(), joined.session_seq), (EventType::Joined, 1));
    assert_eq!(
        (&joined.metadata["joined_session_id"], &joined.metadata["reason"]),
        (&json!(first), &json!("cooldown"))
    );
    let mut watch = stage.tarsy("watch", &["watch", &second.to_string(), "--json"]);
    let (code, shown) = watch.finished().await;
    assert_eq!(code, 0, "{}", watch.log());
    let shown: Vec<TimelineEvent> = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let stored = tarsy::engine::ports::Outbox::events(&stage.database.store(), first, 0, 1000).await.unwrap();
    assert_eq!(shown, [vec![joined], stored].concat(), "the watcher is led to the finished session");
    assert_eq!(stage.model_calls(), paid, "the cooldown costs nothing");

    let forced = submit(&stage, ("firing", "warning"), &["--force"]).await;
    assert_eq!(end_of(&stage, forced).await.event_type, EventType::SessionCompleted);
    let worse = submit(&stage, ("firing", "critical"), &[]).await;
    assert_eq!(end_of(&stage, worse).await.event_type, EventType::SessionCompleted);
    // Now the worse one answers for both.
    let last = submit(&stage, ("firing", "warning"), &[]).await;
    assert_eq!(end_of(&stage, last).await.metadata["joined_session_id"], json!(worse));
    let sessions = "SELECT string_agg(session_id::text, ' ' ORDER BY created_at) FROM alert_sessions";
    assert_eq!(stage.database.text(sessions), format!("{first} {forced} {worse}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resolved_alert_joins_the_open_investigation_and_starts_none_after_its_end() {
    let watched = &["answer-0-middle"];
    let mut stage = Stage::set_up(Setup { watched, cooldown: HOUR, ..Setup::default() }).await;
    let (_worker, _) = stage.worker("w1").await;
    let first = submit(&stage, ("firing", "warning"), &[]).await;
    let held = stage.gates.next().await;
    let mut timeline = stage.follow(first).await;
    let resolved = submit(&stage, ("resolved", "warning"), &[]).await;
    let told = timeline.until(EventType::AlertResolved).await;
    assert_eq!(told.metadata["alert_id"], json!(resolved));
    let joined = end_of(&stage, resolved).await;
    assert_eq!((joined.event_type, &joined.metadata["joined_session_id"]), (EventType::Joined, &json!(first)));
    stage.gates.open_all();
    held.open().await;
    assert_eq!(timeline.finish().await.event_type, EventType::SessionCompleted);
    let paid = stage.model_calls();

    let late = submit(&stage, ("resolved", "warning"), &[]).await;
    let end = end_of(&stage, late).await;
    assert_eq!((end.event_type, end.session_seq), (EventType::SessionCompleted, 1));
    assert_eq!(end.metadata["stop_reason"], "not_investigated");
    let mut watch = stage.tarsy("watch", &["watch", &late.to_string()]);
    assert_eq!(watch.finished().await.0, 0, "{}", watch.log());
    assert_eq!(stage.model_calls(), paid);
    assert_eq!(stage.database.number("SELECT count(*) FROM alert_sessions"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_joins_no_investigation_and_answers_for_no_alert() {
    let mut stage = Stage::set_up(Setup { cooldown: HOUR, ..Setup::default() }).await;
    let (_worker, _) = stage.worker("w1").await;
    let first = submit(&stage, ("firing", "warning"), &[]).await;
    assert_eq!(end_of(&stage, first).await.event_type, EventType::SessionCompleted);
    // Another one of its fingerprint is open all the while.
    stage.gates.watch("answer-0-start");
    let open = submit(&stage, ("firing", "warning"), &["--force"]).await;
    let held = stage.gates.next().await;
    stage.gates.open_all();
    let mut ask = stage.tarsy("ask", &["ask", &first.to_string(), "Is it over?", "--no-watch"]);
    let (code, question) = ask.finished().await;
    assert_eq!(code, 0, "{}", ask.log());
    let question = SessionId::parse(question.trim()).unwrap();
    assert_eq!(end_of(&stage, question).await.event_type, EventType::SessionCompleted);
    let joined = submit(&stage, ("firing", "warning"), &[]).await;
    assert_eq!(end_of(&stage, joined).await.metadata["joined_session_id"], json!(open));
    held.open().await;
    assert_eq!(end_of(&stage, open).await.event_type, EventType::SessionCompleted);

    let mut ask = stage.tarsy("ask", &["ask", &first.to_string(), "Is it over now?", "--no-watch"]);
    let (code, last) = ask.finished().await;
    assert_eq!(code, 0, "{}", ask.log());
    let last = SessionId::parse(last.trim()).unwrap();
    assert_eq!(end_of(&stage, last).await.event_type, EventType::SessionCompleted);
    let cooled = submit(&stage, ("firing", "warning"), &[]).await;
    assert_eq!(end_of(&stage, cooled).await.metadata["joined_session_id"], json!(open), "not the newer question");
}
