//! `tarsy prune`, and the answers of other commands about deleted sessions.

use serde_json::json;

use super::run;
use crate::support::process::metric_is;
use crate::support::system::{Setup, TestSystem};

/// Makes every settlement ten days older.
const AGE: &str = "UPDATE alert_sessions SET settled_at = settled_at - interval '10 d'; \
                   UPDATE alerts SET settled_at = settled_at - interval '10 d'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prune_counts_and_deletes_rows_and_commands_explain_missing_sessions() {
    let system = TestSystem::start(&[]).await;
    let (_worker, _) = system.worker("w1").await;
    let session = system.publish().await;
    let mut timeline = system.follow(session).await;
    timeline.finish().await;
    system.assert_invariants(session, &timeline.seen).await;

    let no_age = run(&system, &["prune"]).await.exits(2);
    assert!(
        no_age
            .err
            .contains("set --older-than, or configure `retention`"),
        "{no_age:?}"
    );
    let young = run(&system, &["prune", "--older-than", "9d"])
        .await
        .exits(0);
    assert_eq!(
        (young.out.as_str(), young.err.as_str()),
        ("", "nothing is old enough: no row deleted\n")
    );

    system.database.execute(AGE);
    let counted = run(
        &system,
        &["prune", "--older-than", "9d", "--dry-run", "--json"],
    )
    .await
    .exits(0)
    .json()
    .remove(0);
    assert_eq!(counted["dry_run"], json!(true));
    assert_eq!(
        (
            &counted["rows"]["alert_sessions"],
            &counted["rows"]["alerts"]
        ),
        (&json!(1), &json!(1))
    );
    let counted_text = run(&system, &["prune", "--older-than", "9d", "--dry-run"])
        .await
        .exits(0)
        .out;
    assert!(
        counted_text.contains("1  alert_sessions would be deleted"),
        "{counted_text}"
    );
    let pruned = run(&system, &["prune", "--older-than", "9d", "--json"])
        .await
        .exits(0)
        .json()
        .remove(0);
    assert_eq!(
        (&pruned["dry_run"], &pruned["rows"]),
        (&json!(false), &counted["rows"])
    );

    let by_id = run(&system, &["sessions", "show", &session.to_string()])
        .await
        .exits(1);
    assert!(
        by_id.err.contains("or be deleted (tarsy prune)"),
        "{by_id:?}"
    );
    let by_part = run(&system, &["sessions", "show", &session.short()])
        .await
        .exits(1);
    assert!(
        by_part
            .err
            .contains("old ones may be deleted (tarsy prune)"),
        "{by_part:?}"
    );
    // The stream keeps the timeline for three days.
    let watched = run(&system, &["watch", &session.to_string(), "--json"])
        .await
        .exits(0);
    assert_eq!(watched.json().len(), timeline.seen.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_deletes_rows_older_than_its_retention_and_counts_them() {
    let sections = "retention:\n  sessions: 9d\n  alerts: 9d\ndatabase:\n  pool_size: 2\n";
    let system = TestSystem::start_with(Setup {
        sections,
        sweep: std::time::Duration::from_secs(1),
        ..Setup::default()
    })
    .await;
    let (_worker, metrics) = system.worker("w1").await;
    let session = system.publish().await;
    let mut timeline = system.follow(session).await;
    timeline.finish().await;
    system.assert_invariants(session, &timeline.seen).await;
    metric_is(&metrics, "tarsy_rows_pruned_total", "", 0.0).await;
    // Two connections for the sessions and one for the renewals of leases.
    let connections = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                       AND application_name LIKE 'tarsy worker%'";
    assert!(
        system.database.number(connections) <= 3,
        "{}",
        system.database.number(connections)
    );
    system.database.execute(AGE);
    metric_is(
        &metrics,
        "tarsy_rows_pruned_total",
        "table=\"alert_sessions\"",
        1.0,
    )
    .await;
    metric_is(&metrics, "tarsy_rows_pruned_total", "table=\"alerts\"", 1.0).await;
    assert_eq!(
        system
            .database
            .number("SELECT count(*) FROM timeline_events"),
        0
    );
}
