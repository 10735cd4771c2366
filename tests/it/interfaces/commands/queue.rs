//! `tarsy watch` of a queued alert and of all sessions.

use std::time::Duration;

use serde_json::json;
use tarsy::engine::ports::{Presence as _, WorkerStatus};
use tarsy::investigation::ids::{SessionId, WorkerId};
use tarsy::investigation::timeline::EventType;
use uuid::Uuid;

use super::run;
use crate::support::system::TestSystem;

fn id() -> SessionId {
    SessionId(Uuid::now_v7())
}

/// Publishes the status of two busy workers repeatedly.
async fn announce(system: &TestSystem) {
    let presence = system.connect().await;
    let workers = ["w1", "w2"].map(|name| WorkerStatus {
        worker_id: WorkerId(Uuid::new_v4()),
        name: name.to_owned(),
        version: "0".to_owned(),
        slots: 4,
        sessions: [(); 4].map(|()| id()).to_vec(),
        state: "claiming".to_owned(),
    });
    let mut tick = tokio::time::interval(Duration::from_millis(200));
    loop {
        tick.tick().await;
        workers.iter().for_each(|worker| presence.announce(worker));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queued_alert_is_shown_once_with_its_position_and_the_workers() {
    let system = TestSystem::start(&[]).await;
    let file = system.file("alert.txt");
    std::fs::write(&file, "disk full on db-3").unwrap();
    let file = file.to_str().unwrap().to_owned();
    let first = run(&system, &["submit", &file, "--json", "--force", "--suffix", "disk"]).await.exits(0);
    let published = first.json().remove(0);
    assert_eq!((&published["subject"], &published["stream_sequence"]), (&json!("tarsy.alerts.normal.disk"), &json!(1)));

    let alone = run(&system, &["submit", &file, "--watch", "--timeout", "8s"]).await.exits(3);
    let waiting = "queued: 1 alert of priority normal before it; no worker is running: tarsy worker starts one\n";
    assert!(alone.err.contains(waiting), "{}", alone.err);
    let unbegun = published["session_id"].as_str().unwrap().to_owned();
    let submit = ["submit", &file, "--watch", "--timeout", "8s", "--priority", "low"];
    let watch = ["watch", &unbegun, "--timeout", "8s"];
    let both = async { tokio::join!(run(&system, &submit), run(&system, &watch)) };
    let (submitted, watched) = tokio::select! {
        () = announce(&system) => unreachable!("the workers send their status forever"),
        both = both => both,
    };
    let expected = "queued: the next one of priority low; 2 workers, 8 slots, 8 busy\n";
    assert_eq!(submitted.exits(3).err.matches(expected).count(), 1);
    let watched = watched.exits(3).err;
    assert!(watched.contains("queued: critical 0, high 0, normal 2, low 1; 2 workers, 8 slots, 8 busy"), "{watched}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_events_of_all_sessions_are_shown_until_ctrl_c() {
    let mut system = TestSystem::start(&["answer-1-start"]).await;
    let (_worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    let held = system.gates.next().await;
    let mut people = system.tarsy("watch", &["watch", "--all"]);
    let mut programs = system.tarsy("watch", &["watch", "--all", "--json"]);
    let running = people.line_with("running for").await;
    assert!(running.contains(&session.short()) && running.contains("on w1"), "{running}");
    let listed = programs.line_with("\"status\":\"running\"").await;
    assert!(listed.contains(&session.to_string()), "{listed}");
    held.open().await;
    let line = people.line_with("completed  ").await;
    assert!(line.contains(&session.short()), "{line}");
    let end = programs.line_with("session_completed").await;
    let end: serde_json::Value = serde_json::from_str(&end).unwrap();
    assert_eq!(end["event_type"], EventType::SessionCompleted.as_str());
    for watcher in [&mut people, &mut programs] {
        watcher.interrupt();
        assert_eq!(watcher.finished().await.0, 130);
    }
}
