//! `tarsy watch` of a queued alert and of all sessions.

use std::time::Duration;

use serde_json::json;
use tarsy_core::ids::{SessionId, WorkerId};
use tarsy_core::timeline::EventType;
use tarsy_engine::ports::{Presence as _, WorkerStatus};
use uuid::Uuid;

use super::run;
use crate::support::system::TestSystem;

fn id() -> SessionId {
    SessionId(Uuid::now_v7())
}

/// Publishes the status of two busy workers repeatedly.
async fn announce(system: &TestSystem) {
    announce_as(system, "claiming", &[]).await;
}

/// Publishes the status of two workers in this state repeatedly.
async fn announce_as(system: &TestSystem, state: &str, unavailable: &[&str]) {
    let presence = system.connect().await;
    let workers = ["w1", "w2"].map(|name| WorkerStatus {
        worker_id: WorkerId(Uuid::new_v4()),
        name: name.to_owned(),
        version: "0".to_owned(),
        slots: 4,
        sessions: [(); 4].map(|()| id()).to_vec(),
        busy: 4,
        state: state.to_owned(),
        unavailable: unavailable
            .iter()
            .map(|service| (*service).to_owned())
            .collect(),
        state_ms: 12_000,
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
    let first = run(
        &system,
        &["submit", &file, "--json", "--force", "--suffix", "disk"],
    )
    .await
    .exits(0);
    let published = first.json().remove(0);
    assert_eq!(
        (&published["subject"], &published["stream_sequence"]),
        (&json!("tarsy.alerts.normal.disk"), &json!(1))
    );

    let alone = run(&system, &["submit", &file, "--watch", "--timeout", "8s"])
        .await
        .exits(3);
    let waiting = "queued: 1 alert of priority normal before it; no worker is running: tarsy worker starts one\n";
    assert!(alone.err.contains(waiting), "{}", alone.err);
    let unbegun = published["session_id"].as_str().unwrap().to_owned();
    let submit = [
        "submit",
        &file,
        "--watch",
        "--timeout",
        "8s",
        "--priority",
        "low",
    ];
    let watch = ["watch", &unbegun, "--timeout", "8s"];
    let both = async { tokio::join!(run(&system, &submit), run(&system, &watch)) };
    let (submitted, watched) = tokio::select! {
        () = announce(&system) => unreachable!("the workers send their status forever"),
        both = both => both,
    };
    let expected = "queued: the next one of priority low; 2 workers, 8 slots, 8 busy\n";
    assert_eq!(submitted.exits(3).err.matches(expected).count(), 1);
    let watched = watched.exits(3).err;
    assert!(
        watched.contains("queued: the next one of priority normal; 2 workers, 8 slots, 8 busy"),
        "{watched}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queued_alert_whose_workers_have_no_database_is_said_to_wait_for_it() {
    let system = TestSystem::start(&[]).await;
    let submit = [
        "submit",
        "disk full",
        "--watch",
        "--json",
        "--timeout",
        "8s",
    ];
    let (submitted, queue) = tokio::select! {
        () = announce_as(&system, "paused", &["database"]) => unreachable!("the workers send their status forever"),
        both = async { tokio::join!(run(&system, &submit), run(&system, &["queue", "--wait", "1s"])) } => both,
    };
    let submitted = submitted.exits(3);
    let expected = "queued: the next one of priority normal; waiting: the database does not answer (since 12 s)\n";
    assert_eq!(
        (
            submitted.out.as_str(),
            submitted.err.matches(expected).count()
        ),
        ("", 1),
        "{}",
        submitted.err
    );
    let queue = queue.exits(0).out;
    assert_eq!(
        queue
            .matches("paused: the database does not answer (since 12 s)")
            .count(),
        2,
        "{queue}"
    );
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
    assert!(
        running.contains(&session.short()) && running.contains("on w1"),
        "{running}"
    );
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watchers_are_informed_that_an_investigation_waits_and_for_which_service() {
    let mut system = TestSystem::start(&["answer-1-middle"]).await;
    let (worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    let held = system.gates.next().await;
    let id = session.to_string();
    let mut people = system.tarsy("people", &["watch", &id]);
    let mut programs = system.tarsy("programs", &["watch", &id, "--json"]);
    let address = system.llm_addr().to_owned();
    system.llm.kill().await;
    drop(held);
    worker.logged("session released").await;
    for watcher in [&people, &programs] {
        watcher
            .logged("waiting: the LLM service does not answer (since ")
            .await;
    }
    system.gates.open_all();
    system.start_llm_service(&address).await;
    let resumed = people.line_with("resumed on w1").await;
    assert!(
        resumed.contains("released by w1: the LLM service "),
        "{resumed}"
    );
    assert_eq!(people.finished().await.0, 0, "{}", people.log());
    let (code, out) = programs.finished().await;
    let events: Vec<serde_json::Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        (code, events.last().map(|end| end["event_type"].clone())),
        (0, Some("session_completed".into()))
    );
    // No worker at all is another reason, also if the broker gave the alert to the one that died.
    drop(worker);
    let queued = system.publish().await.to_string();
    let mut alone = system.tarsy("alone", &["watch", &queued, "--timeout", "60s"]);
    alone.logged("; no worker is running").await;
    alone.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_without_nats_says_so_and_shows_the_rest_when_it_is_back() {
    let mut system = TestSystem::start(&["answer-1-middle"]).await;
    let (_worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    let held = system.gates.next().await;
    let mut watcher = system.tarsy("watch", &["watch", &session.to_string(), "--json"]);
    let first = watcher.line_with("session_started").await;
    system.nats.kill();
    watcher.logged("waiting: NATS does not answer").await;
    system.nats.restart().await;
    system.gates.open_all();
    drop(held);
    let (code, rest) = watcher.finished().await;
    let number = |line: &str| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["session_seq"]
            .as_u64()
            .unwrap()
    };
    let numbers: Vec<u64> = std::iter::once(first.as_str())
        .chain(rest.lines())
        .map(number)
        .collect();
    assert_eq!(
        (code, &numbers),
        (0, &(1..).take(numbers.len()).collect()),
        "{rest}"
    );
    assert!(
        rest.lines()
            .last()
            .is_some_and(|line| line.contains("session_completed")),
        "{rest}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alert_that_no_worker_has_seen_is_listed_shown_and_cancelled() {
    let system = TestSystem::start(&[]).await;
    let text = "disk full on db-3, password=hunter22";
    let submitted = run(&system, &["submit", text, "--json", "--priority", "high"])
        .await
        .exits(0);
    let id = submitted.json().remove(0)["session_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let short = &id[id.len() - 8..];

    let queue = run(&system, &["queue", "-o", "json", "--wait", "100ms"])
        .await
        .exits(0)
        .json()
        .remove(0);
    let high = &queue["queues"][1];
    assert_eq!(
        (&high["priority"], &high["waiting"], &high["in_work"]),
        (&json!("high"), &json!(1), &json!(0))
    );
    let next = &queue["next"][0];
    assert_eq!(
        (&next["session_id"], &next["subject"]),
        (&json!(id), &json!("tarsy.alerts.high"))
    );
    assert!(
        next["title"]
            .as_str()
            .unwrap()
            .starts_with("disk full on db-3"),
        "{next}"
    );
    assert_eq!(queue["workers"], json!([]));
    let shown = run(&system, &["queue", "--wait", "100ms"])
        .await
        .exits(0)
        .out;
    assert!(
        shown.contains("disk full on db-3") && shown.contains("no worker is running"),
        "{shown}"
    );
    let show = run(&system, &["sessions", "show", short])
        .await
        .exits(0)
        .out;
    assert!(
        show.contains("queued: the next one of priority high") && show.contains(&id),
        "{show}"
    );
    for printed in [queue.to_string(), shown, show] {
        assert!(!printed.contains("hunter22"), "{printed}");
    }
    let watched = run(&system, &["watch", short, "--timeout", "500ms"])
        .await
        .exits(3)
        .err;
    assert!(
        watched.contains(&format!("To watch it again: tarsy watch {id}")),
        "{watched}"
    );
    let cancelled = run(&system, &["cancel", short]).await.exits(0).out;
    assert_eq!(cancelled, format!("session {short} is cancelled\n"));
    let show = run(&system, &["show", short]).await.exits(0).out;
    assert!(
        show.contains("cancelled before it was investigated"),
        "{show}"
    );
    let ask = run(&system, &["ask", short, "why?"]).await.exits(1).err;
    assert_eq!(
        ask,
        format!(
            "tarsy: alert {short} was not investigated: cancelled before it was investigated\n"
        )
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_that_neither_queue_nor_database_knows_is_said_to_be_unknown() {
    let system = TestSystem::start(&[]).await;
    let unknown = id();
    let ran = run(&system, &["watch", &unknown.to_string(), "--timeout", "3s"])
        .await
        .exits(3);
    assert!(
        ran.err
            .contains(&format!("no alert or session {unknown} is known")),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains(&format!("tarsy watch {unknown}")),
        "{}",
        ran.err
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn submit_refuses_what_a_worker_would_give_up_and_publishes_nothing() {
    let system = TestSystem::start(&[]).await;
    let (binary, large) = (system.file("binary"), system.file("large.txt"));
    std::fs::write(&binary, [0, 0xff, 0]).unwrap();
    std::fs::write(&large, "x ".repeat(17_000_000)).unwrap();
    let config = std::fs::read_to_string(system.file("tarsy.yaml")).unwrap();
    let chains = "agent_chains: {db: {default: true, stages: [{agents: [{name: sre}]}]}}\n";
    std::fs::write(system.file("tarsy.yaml"), config + chains).unwrap();
    let (binary, large) = (binary.to_str().unwrap(), large.to_str().unwrap());
    for (arguments, reason) in [
        (
            &["submit", binary][..],
            "is not an alert: body is no text, and not compressed with gzip or deflate; nothing was published",
        ),
        (
            &["submit", large],
            "large.txt has 34000000 bytes, at most 33554432 are read: nothing was published",
        ),
        (
            &["submit", "disk full", "--chain", "nope"],
            "there is no chain \"nope\"; there are: db",
        ),
        (
            &["submit", "no such alert.json"],
            "a text instead of a file: echo 'no such alert.json' | tarsy submit -",
        ),
    ] {
        let ran = run(&system, arguments).await.exits(1);
        assert!(ran.err.contains(reason), "{}", ran.err);
    }
    let queue = run(&system, &["queue", "--json", "--wait", "1ms"])
        .await
        .exits(0)
        .json()
        .remove(0);
    assert_eq!(queue["next"], json!([]));
    run(&system, &["submit", "disk full", "--chain", "db"])
        .await
        .exits(0);
}
