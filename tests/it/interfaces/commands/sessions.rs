//! `tarsy sessions`.

use serde_json::json;
use tarsy::investigation::ids::SessionId;
use tarsy::investigation::timeline::EventType;
use uuid::Uuid;

use super::run;
use crate::support::system::TestSystem;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_are_listed_found_by_words_shown_and_done_again() {
    let system = TestSystem::start(&[]).await;
    let empty = run(&system, &["sessions", "list"]).await.exits(0);
    assert_eq!((empty.out.as_str(), empty.err.as_str()), ("", "there is no session yet\n"));

    let (_worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    assert_eq!(system.follow(session).await.finish().await.event_type, EventType::SessionCompleted);
    let short = session.short();

    let listed = run(&system, &["sessions", "list"]).await.exits(0);
    assert!(listed.out.contains(&short) && listed.out.contains("completed"), "{}", listed.out);
    assert!(listed.out.lines().all(|line| line.chars().count() <= 80), "{}", listed.out);
    for (filter, found) in [
        (&["--status", "completed", "--since", "1h"][..], 1),
        (&["--status", "running"], 0),
        (&["--search", "KubePodOOMKilled"], 1),
        // A word of the analysis only.
        (&["--search", "cause"], 1),
        (&["--search", "oom -checkout"], 0),
        (&["--search", "zeppelin"], 0),
    ] {
        let listed = run(&system, &[&["sessions", "list", "--json"], filter].concat()).await.exits(0);
        assert_eq!(listed.json().len(), found, "{filter:?}: {listed:?}");
        assert_eq!(listed.err.is_empty(), found > 0, "{listed:?}");
    }

    let shown = run(&system, &["sessions", "show", &short]).await.exits(0);
    for part in ["completed (final answer)", "Cause:", "a recording"] {
        assert!(shown.out.contains(part), "{part}: {}", shown.out);
    }
    let shown = run(&system, &["sessions", "show", &session.to_string(), "--json"]).await.exits(0).json().remove(0);
    assert_eq!((&shown["alert_id"], &shown["session"]["status"]), (&json!(session), &json!("completed")));
    assert!(shown["session"]["tool_calls"].as_array().unwrap().len() > 2);
    let report = run(&system, &["sessions", "show", &short, "--report"]).await.exits(0).out;
    assert!(report.starts_with("# ") && report.contains("## Summary") && report.contains("## Analysis"), "{report}");

    let again = run(&system, &["sessions", "rerun", &short[1..], "--json"]).await.exits(0);
    let published = again.json().remove(0);
    assert_eq!((&published["retry_of"], &published["subject"]), (&json!(session), &json!("tarsy.alerts.critical")));
    let new = SessionId::parse(published["session_id"].as_str().unwrap()).unwrap();
    assert_eq!(system.follow(new).await.finish().await.event_type, EventType::SessionCompleted);
    let done = run(&system, &["sessions", "show", &new.to_string(), "--json"]).await.exits(0).json().remove(0);
    assert_eq!(done["headers"]["Tarsy-Retry-Of"], json!(session));
    assert_eq!(done["fingerprint"], shown["fingerprint"], "it is the same alert");
    assert_eq!(done["alert_type"], shown["alert_type"]);
    let file = system.file("severe.json");
    std::fs::write(&file, r#"{"alertname": "DiskFull", "severity": "critical"}"#).unwrap();
    let severe = run(&system, &["submit", file.to_str().unwrap(), "--json", "--priority", "low"]).await.exits(0).json();
    let severe = SessionId::parse(severe[0]["session_id"].as_str().unwrap()).unwrap();
    assert_eq!(system.follow(severe).await.finish().await.event_type, EventType::SessionCompleted);
    let again = run(&system, &["sessions", "rerun", &severe.short(), "--json"]).await.exits(0).json();
    assert_eq!(again[0]["subject"], "tarsy.alerts.critical", "it is as severe as before");
    let watched = run(&system, &["sessions", "rerun", &short, "--watch"]).await.exits(0);
    assert!(watched.out.contains("■ completed"), "{watched:?}");

    let shared = &session.to_string()[..6];
    let many = run(&system, &["sessions", "show", shared]).await.exits(1);
    assert!(many.err.contains("several sessions have") && many.err.contains(&session.to_string()), "{}", many.err);
    let none = run(&system, &["sessions", "show", "ffffffff"]).await.exits(1);
    assert!(none.err.contains("no session has ffffffff"), "{}", none.err);
    let unknown = SessionId(Uuid::now_v7()).to_string();
    let none = run(&system, &["sessions", "show", &unknown]).await.exits(1);
    assert!(none.err.contains("no worker has seen"), "{}", none.err);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_cancelled_by_request_and_one_that_runs_is_not_done_again() {
    let mut system = TestSystem::start(&["answer-1-start"]).await;
    let (worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    let held = system.gates.next().await;
    let short = session.short();
    let again = run(&system, &["sessions", "rerun", &short]).await.exits(1);
    assert!(again.err.contains("is not over yet") && again.err.contains("sessions cancel"), "{}", again.err);

    let joined = system.publish().await;
    assert_eq!(system.follow(joined).await.finish().await.event_type, EventType::Joined);
    let refused = run(&system, &["sessions", "cancel", &joined.short()]).await.exits(1);
    assert!(refused.out.contains(&format!("joined session {short}")), "{refused:?}");
    assert!(system.database.holds("SELECT count(*) = 0 FROM alert_sessions WHERE cancel_requested_at IS NOT NULL"));

    let cancelled = run(&system, &["sessions", "cancel", &short, "--wait", "--json"]).await.exits(0);
    let expected = json!({
        "session_id": session, "outcome": "asked", "status": "cancelled", "joined_session_id": null,
        "database_error": null, "broker_error": null,
    });
    assert_eq!(cancelled.json(), [expected]);
    assert!(system.connect().await.cancel_requested(session).await.unwrap(), "the broker has the request, too");
    drop(held);
    let twice = run(&system, &["sessions", "cancel", &short]).await.exits(0);
    assert_eq!(twice.out, format!("session {short} is over: cancelled\n"));
    let unknown = SessionId(Uuid::now_v7()).to_string();
    let unknown = run(&system, &["sessions", "cancel", &unknown]).await.exits(1);
    assert!(unknown.out.contains("there is no session"), "{unknown:?}");

    worker.terminate();
    let mut worker = worker;
    worker.finished().await;
    let queued = system.publish().await;
    let asked = run(&system, &["sessions", "cancel", &queued.to_string()]).await.exits(0);
    assert!(asked.out.contains("no worker has seen"), "{asked:?}");
    assert!(system.connect().await.cancel_requested(queued).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn either_way_of_cancelling_suffices_and_the_other_ones_fault_is_told() {
    let mut system = TestSystem::start(&["answer-1-start"]).await;
    let (worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    let held = system.gates.next().await;
    // So that it does not end between the two requests.
    worker.stop();
    let id = session.to_string();
    let args = ["sessions", "cancel", &id, "--database-url", "postgres://u:hidden-word@127.0.0.1:1/none"];
    let by_broker = run(&system, &args).await.exits(0);
    assert!(by_broker.err.starts_with("the database did not store the request: "), "{by_broker:?}");
    let by_database =
        run(&system, &["sessions", "cancel", &id, "--nats-url", "nats://u:hidden-word@127.0.0.1:1"]).await;
    let by_database = by_database.exits(0);
    assert!(by_database.err.starts_with("the broker did not store the request: "), "{by_database:?}");
    for said in [&by_broker, &by_database] {
        assert!(!format!("{said:?}").contains("hidden-word"), "{said:?}");
    }
    worker.cont();
    assert_eq!(system.follow(session).await.finish().await.event_type, EventType::SessionCancelled);
    drop(held);
}
