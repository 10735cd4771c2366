//! A route with a limit of an hour, on real workers.

use serde_json::json;
use tarsy_core::ids::SessionId;

use super::{events_of, publish, start, webhook};
use crate::interfaces::commands::run_with;
use crate::support::system::TestSystem;
use crate::support::wait::eventually;

/// Alerts of a team whose route opens two investigations an hour, each of its own name.
async fn storm(system: &TestSystem, names: &[&str]) -> Vec<SessionId> {
    let mut ids = Vec::new();
    for name in names {
        ids.push(publish(system, webhook(name, &json!({"team": "storage"})), &[]).await);
    }
    ids
}

/// The output of a command.
async fn ran(system: &TestSystem, args: &[&str]) -> String {
    run_with(&system.env(system.database.url()).each(), args, b"")
        .await
        .exits(0)
        .out
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_route_opens_as_many_investigations_as_it_may_whatever_worker_dies() {
    let system = start().await;
    let (mut first, _) = system.worker("w1").await;
    let mut alerts = storm(&system, &["DiskA", "DiskB", "DiskC"]).await;
    let opened = "SELECT EXISTS (SELECT FROM alert_sessions)";
    eventually("the first worker has begun", async || {
        system.database.holds(opened)
    })
    .await;
    first.kill().await;
    alerts.extend(storm(&system, &["DiskD", "DiskE", "DiskF"]).await);
    let (_second, _) = system.worker("w2").await;
    let (_third, _) = system.worker("w3").await;
    for alert in &alerts {
        let seen = events_of(&system, *alert).await;
        system.assert_invariants(*alert, &seen).await;
    }
    let statuses = system.database.text(
        "SELECT string_agg(status || ' ' || n, ', ' ORDER BY status) FROM \
         (SELECT status, count(*) AS n FROM alert_sessions GROUP BY status) x",
    );
    assert_eq!(statuses, "completed 2, limited 1");

    let list = system
        .database
        .text("SELECT session_id::text FROM alert_sessions WHERE status = 'limited'");
    let shown = ran(&system, &["sessions", "show", &list]).await;
    let investigated = system.database.text(
        "SELECT string_agg(a.title, ' ') FROM alert_sessions s JOIN alerts a ON a.alert_id = s.session_id \
         WHERE s.status = 'completed'",
    );
    for name in ["DiskA", "DiskB", "DiskC", "DiskD", "DiskE", "DiskF"] {
        assert_eq!(
            shown.contains(name),
            !investigated.contains(name),
            "{name}, {investigated}: {shown}"
        );
    }
    assert!(
        shown.contains("route storage opens at most 2 investigations an hour"),
        "{shown}"
    );

    // A person gets an investigation of a listed alert, and it takes no place of the others.
    let of_list = system
        .database
        .text("SELECT alert_id::text FROM alerts WHERE joined_session_id IS NOT NULL LIMIT 1");
    ran(&system, &["sessions", "rerun", &of_list, "--watch"]).await;
    assert_eq!(
        system
            .database
            .number("SELECT count(*) FROM alert_sessions WHERE status = 'completed'"),
        3
    );
}
