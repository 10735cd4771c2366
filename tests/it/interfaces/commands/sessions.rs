//! `tarsy sessions`.

use serde_json::json;
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;
use uuid::Uuid;

use super::run;
use crate::support::system::TestSystem;

/// Waits for the end of a session.
async fn completed(system: &TestSystem, session: SessionId) {
    assert_eq!(
        system.follow(session).await.finish().await.event_type,
        EventType::SessionCompleted
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_are_listed_by_status_age_and_words() {
    let system = TestSystem::start(&[]).await;
    let empty = run(&system, &["sessions", "list"]).await.exits(0);
    assert_eq!(
        (empty.out.as_str(), empty.err.as_str()),
        (
            "",
            "there is no session yet; tarsy queue shows what waits\n"
        )
    );

    let (_worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    completed(&system, session).await;
    let listed = run(&system, &["sessions", "list"]).await.exits(0);
    assert!(
        listed.out.contains(&session.short()) && listed.out.contains("completed"),
        "{}",
        listed.out
    );
    assert!(
        listed.out.lines().all(|line| line.chars().count() <= 80),
        "{}",
        listed.out
    );
    for (filter, found) in [
        (&["--status", "completed", "--since", "1h"][..], 1),
        (&["--status", "running"], 0),
        (&["--status", "running,completed", "--status", "failed"], 1),
        (&["--severity", "critical,high"], 1),
        (&["--severity", "low"], 0),
        (
            &["--label", "namespace=checkout", "--since", "yesterday"],
            1,
        ),
        (
            &[
                "--label",
                "namespace=checkout",
                "--label",
                "namespace=other",
            ],
            0,
        ),
        (
            &["--since", "2020-01-01", "--until", "2020-12-31T10:00Z"],
            0,
        ),
        (&["--since", "2020-01-01", "--until", "today"], 1),
        (&["--chain", "none", "--chain", "other"], 0),
        (&["--source", "none"], 0),
        (&["--search", "KubePodOOMKilled"], 1),
        // This word is only in the analysis.
        (&["--search", "cause"], 1),
        (&["--search", "oom -checkout"], 0),
        (&["--search", "zeppelin"], 0),
    ] {
        let listed = run(&system, &[&["sessions", "list", "--json"], filter].concat())
            .await
            .exits(0);
        assert_eq!(listed.json().len(), found, "{filter:?}: {listed:?}");
        assert_eq!(
            listed.err,
            if found > 0 {
                ""
            } else {
                "no matching sessions\n"
            },
            "{listed:?}"
        );
    }
    for (wrong, accepted) in [
        (
            ["--since", "tomorrow"],
            "accepted: 3h, 7d, today, yesterday, 2026-11-27 or 2026-11-27T10:00Z",
        ),
        (
            ["--label", "x"],
            "accepted: key=value, for example namespace=checkout",
        ),
        (["--severity", "bad"], "bad"),
    ] {
        let refused = run(&system, &[&["sessions", "list"], &wrong[..]].concat())
            .await
            .exits(2);
        assert!(
            refused.err.contains(accepted) && refused.err.contains(wrong[0]),
            "{wrong:?}: {}",
            refused.err
        );
    }
    run(&system, &["sessions", "rerun", &session.short(), "--watch"])
        .await
        .exits(0);
    let cut = run(&system, &["list", "-n", "1"]).await.exits(0);
    assert_eq!(
        (cut.out.lines().count(), cut.err.as_str()),
        (2, "1 of 2; --limit shows more\n")
    );
    assert_eq!(run(&system, &["ls", "-n", "2"]).await.exits(0).err, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_shown_as_text_as_json_and_as_a_report() {
    let system = TestSystem::start(&[]).await;
    let (_worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    completed(&system, session).await;
    let short = session.short();

    let shown = run(&system, &["sessions", "show", &short]).await.exits(0);
    for part in ["completed (final answer)", "Cause:", "a recording"] {
        assert!(shown.out.contains(part), "{part}: {}", shown.out);
    }
    let shown = run(
        &system,
        &["sessions", "show", &session.to_string(), "--json"],
    )
    .await
    .exits(0)
    .json()
    .remove(0);
    assert_eq!(
        (&shown["alert_id"], &shown["session"]["status"]),
        (&json!(session), &json!("completed"))
    );
    assert!(shown["session"]["tool_calls"].as_array().unwrap().len() > 2);
    let report = run(&system, &["sessions", "show", &short, "--report"])
        .await
        .exits(0)
        .out;
    assert!(
        report.starts_with("# ") && report.contains("## Summary") && report.contains("## Analysis"),
        "{report}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rerun_investigates_the_same_alert_with_the_same_severity() {
    let system = TestSystem::start(&[]).await;
    let (_worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    completed(&system, session).await;
    let short = session.short();

    let shown = run(&system, &["sessions", "show", &short, "--json"])
        .await
        .exits(0)
        .json()
        .remove(0);
    let rerun = run(&system, &["sessions", "rerun", &short[1..], "--json"])
        .await
        .exits(0)
        .json()
        .remove(0);
    assert_eq!(
        (&rerun["retry_of"], &rerun["subject"]),
        (&json!(session), &json!("tarsy.alerts.critical"))
    );
    let new = SessionId::parse(rerun["session_id"].as_str().unwrap()).unwrap();
    completed(&system, new).await;
    let again = run(&system, &["sessions", "show", &new.to_string(), "--json"])
        .await
        .exits(0)
        .json()
        .remove(0);
    assert_eq!(again["headers"]["Tarsy-Retry-Of"], json!(session));
    assert_eq!(
        again["fingerprint"], shown["fingerprint"],
        "it is the same alert"
    );
    assert_eq!(again["alert_type"], shown["alert_type"]);

    let chains = system.file("chains.yaml");
    std::fs::write(
        &chains,
        "agents: {sre: {}}\nagent_chains: {k8s: {stages: [{name: s, agents: [{name: sre}]}]}}\n",
    )
    .unwrap();
    let stored = "SELECT count(*) FROM alerts";
    let alerts = system.database.number(stored);
    let args = [
        "sessions",
        "rerun",
        &short,
        "--chain",
        "nope",
        "--config",
        chains.to_str().unwrap(),
    ];
    let refused = run(&system, &args).await.exits(1);
    assert_eq!(
        refused.err,
        "tarsy: there is no chain \"nope\"; there are: k8s; nothing was published\n"
    );
    assert_eq!(
        (refused.out.as_str(), system.database.number(stored)),
        ("", alerts)
    );

    let file = system.file("severe.json");
    std::fs::write(
        &file,
        r#"{"alertname": "DiskFull", "severity": "critical"}"#,
    )
    .unwrap();
    let severe = run(
        &system,
        &[
            "submit",
            file.to_str().unwrap(),
            "--json",
            "--priority",
            "low",
        ],
    )
    .await
    .exits(0)
    .json();
    let severe = SessionId::parse(severe[0]["session_id"].as_str().unwrap()).unwrap();
    completed(&system, severe).await;
    let rerun = run(&system, &["sessions", "rerun", &severe.short(), "--json"])
        .await
        .exits(0)
        .json();
    assert_eq!(
        rerun[0]["subject"], "tarsy.alerts.critical",
        "the priority follows the severity, not the first subject"
    );
    let watched = run(&system, &["sessions", "rerun", &short, "--watch"])
        .await
        .exits(0);
    assert!(watched.out.contains("■ completed"), "{watched:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ambiguous_or_unknown_id_is_refused() {
    let system = TestSystem::start(&[]).await;
    let (_worker, _) = system.worker("w1").await;
    let (first, second) = (system.publish().await, system.publish().await);
    for session in [first, second] {
        system.follow(session).await.finish().await;
    }

    let shared = &first.to_string()[..6];
    let many = run(&system, &["sessions", "show", shared]).await.exits(1);
    assert!(
        many.err.contains("several sessions have") && many.err.contains(&first.to_string()),
        "{}",
        many.err
    );
    let none = run(&system, &["sessions", "show", "ffffffff"])
        .await
        .exits(1);
    assert!(none.err.contains("no session has ffffffff"), "{}", none.err);
    let unknown = SessionId(Uuid::now_v7()).to_string();
    let none = run(&system, &["sessions", "show", &unknown]).await.exits(1);
    assert!(none.err.contains("no worker has seen"), "{}", none.err);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_cancelled_on_request_and_a_running_one_is_not_rerun() {
    let mut system = TestSystem::start(&["answer-1-start"]).await;
    let (worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    let held = system.gates.next().await;
    let short = session.short();
    let again = run(&system, &["sessions", "rerun", &short]).await.exits(1);
    assert!(
        again.err.contains("is not over yet") && again.err.contains("sessions cancel"),
        "{}",
        again.err
    );

    let joined = system.publish().await;
    assert_eq!(
        system.follow(joined).await.finish().await.event_type,
        EventType::Joined
    );
    let refused = run(&system, &["sessions", "cancel", &joined.short()])
        .await
        .exits(1);
    assert!(
        refused.out.contains(&format!("belongs to {short}")),
        "{refused:?}"
    );
    assert!(
        system
            .database
            .holds("SELECT count(*) = 0 FROM alert_sessions WHERE cancel_requested_at IS NOT NULL")
    );

    let cancelled = run(&system, &["sessions", "cancel", &short, "--wait", "--json"])
        .await
        .exits(0);
    let expected = json!({
        "session_id": session, "outcome": "asked", "status": "cancelled", "joined_session_id": null,
        "database_error": null, "broker_error": null,
    });
    assert_eq!(cancelled.json(), [expected]);
    assert!(
        system
            .connect()
            .await
            .cancel_requested(session)
            .await
            .unwrap(),
        "the broker has the request, too"
    );
    drop(held);
    let twice = run(&system, &["sessions", "cancel", &short]).await.exits(0);
    assert_eq!(twice.out, format!("session {short} is over: cancelled\n"));
    let unknown = SessionId(Uuid::now_v7()).to_string();
    let unknown = run(&system, &["sessions", "cancel", &unknown])
        .await
        .exits(1);
    assert!(unknown.out.contains("there is no session"), "{unknown:?}");

    worker.terminate();
    let mut worker = worker;
    worker.finished().await;
    let queued = system.publish().await;
    let asked = run(&system, &["sessions", "cancel", &queued.to_string()])
        .await
        .exits(0);
    assert_eq!(
        asked.out,
        format!("session {} is cancelled\n", queued.short())
    );
    assert!(
        system
            .connect()
            .await
            .cancel_requested(queued)
            .await
            .unwrap(),
        "a worker publishes the end"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_request_needs_only_the_database_or_the_broker() {
    let mut system = TestSystem::start(&["answer-1-start"]).await;
    let (worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    let held = system.gates.next().await;
    // While the worker is stopped, the session cannot end between the two requests.
    worker.pause();
    let id = session.to_string();
    let args = [
        "sessions",
        "cancel",
        &id,
        "--database-url",
        "postgres://u:hidden-word@127.0.0.1:1/none",
    ];
    let by_broker = run(&system, &args).await.exits(0);
    assert!(
        by_broker
            .err
            .starts_with("the database did not store the request: "),
        "{by_broker:?}"
    );
    let by_database = run(
        &system,
        &[
            "sessions",
            "cancel",
            &id,
            "--nats-url",
            "nats://u:hidden-word@127.0.0.1:1",
        ],
    )
    .await;
    let by_database = by_database.exits(0);
    assert!(
        by_database
            .err
            .starts_with("the broker did not store the request: "),
        "{by_database:?}"
    );
    for ran in [&by_broker, &by_database] {
        assert!(!format!("{ran:?}").contains("hidden-word"), "{ran:?}");
    }
    worker.resume();
    assert_eq!(
        system.follow(session).await.finish().await.event_type,
        EventType::SessionCancelled
    );
    drop(held);
}
