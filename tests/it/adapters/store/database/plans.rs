//! Query plans: no statement reads settled rows.

use diesel::prelude::*;
use diesel::sql_types::Text;
use tarsy_engine::ports::{Journal, Sessions};

use crate::adapters::store::fixture::{LEASE, numbered, prompt, running_session};
use crate::support::postgres::TestDatabase;
use crate::support::wait::eventually;

/// Settled alerts and sessions, a few of each fingerprint, and the statistics of their tables.
pub(super) const HISTORY: &str = "
    INSERT INTO alerts (alert_id, settled_at, joined_session_id, last_delivery, stream_sequence, place, body_sha256,
                        subject, headers, severity, body)
    SELECT gen_random_uuid(), now(), CASE WHEN n % 2 = 0 THEN gen_random_uuid() END, gen_random_uuid(), n,
           CASE WHEN n % 2 = 0 THEN 'joined' ELSE 'opened' END, sha256(''), 's', '{}', 'high', 'b'
    FROM generate_series(1, 20000) n;
    INSERT INTO alert_sessions (session_id, deadline_at, lease_expires_at, finished_at, settled_at, lease_period,
                                lease_token, worker_name, status, fingerprint, chain, final_analysis)
    SELECT alert_id, now(), now(), now() - interval '1 day', now(), '30 s', alert_id, 'w', 'completed',
           'fp-' || stream_sequence % 1000, 'c', 'a'
    FROM alerts WHERE place = 'opened';
    INSERT INTO alert_updates (session_id, update_no, alert_id, created_at, firing, resolved, severity, status, report)
    SELECT session_id, 1, session_id, now(), '{}', '{}', 'high', 'firing', '{}' FROM alert_sessions;
    INSERT INTO notifications (session_id, route, moment, closed_at, outcome)
    SELECT session_id, 'ops', 'ended', now(), 'sent' FROM alert_sessions;
    INSERT INTO approvals (session_id, event_seq, execution_id, call_id, tool, policy, arguments, call_sha256,
                           schema_sha256, why, evidence, origins, quorum, expires_at, valid_for, on_resolved,
                           other_person, channels, closed_at, closed_as)
    SELECT session_id, 2, session_id, 'c', 't', 'p', '{}', sha256(''), sha256(''), '', '{}', '[]', 1, now(),
           '15 min', 'withdraw', false, '{web}', now(), 'expired' FROM alert_sessions;
    ANALYZE alerts, alert_sessions, alert_updates, notifications, approvals";

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text, column_name = "QUERY PLAN")]
    text: String,
}

/// The generic plan of a prepared statement.
fn plan(database: &TestDatabase, sql: &str, types: &str, arguments: &str) -> String {
    let mut connection = database.connection();
    let mut run = |sql: String| diesel::sql_query(sql).execute(&mut connection).unwrap();
    run("SET plan_cache_mode = force_generic_plan".into());
    run(format!("PREPARE s ({types}) AS {}", numbered(sql)));
    let lines: Vec<Line> = diesel::sql_query(format!("EXPLAIN EXECUTE s ({arguments})"))
        .load(&mut connection)
        .unwrap();
    lines
        .into_iter()
        .map(|line| line.text)
        .collect::<Vec<_>>()
        .join("\n")
}

#[tokio::test]
async fn neither_a_sweep_nor_an_open_reads_settled_rows() {
    let database = TestDatabase::create().await;
    database.execute(HISTORY);
    let sweep = include_str!("../../../../../crates/store/src/sql/sweep.sql");
    let open = include_str!("../../../../../crates/store/src/sql/open.sql");
    let sweep = plan(&database, sweep, "float8, bigint, float8", "15, 100, 60");
    let id = "'019ab000-0000-7000-8000-000000000000'";
    let open = plan(
        &database,
        open,
        "uuid, text, text, timestamptz, uuid[], integer, uuid[], text, integer, integer, jsonb, uuid[], \
         uuid[], text, boolean, float8, integer, text, float8, uuid, text, text, text, float8, uuid, uuid, uuid, \
         text[], integer[], text, integer, jsonb, text, text, text, text, text, jsonb, text, text, text, jsonb, \
         jsonb, text[], text[], uuid[], integer[], integer[], text[], text[], text[], text[], text[], text[], \
         jsonb[], text[], text[], text[]",
        &format!(
            "{id}, 'fp-1', 'firing', NULL, ARRAY[{id}]::uuid[], 50, '{{}}', 'high', 512, NULL, NULL, '{{}}', \
             '{{}}', 'low', true, 3600, 5, 'r', 2400, {id}, 'w', 'c', 'why', 30, {id}, NULL, NULL, \
             '{{}}', '{{}}', NULL, 1, '{{}}', 't', 't', 's', 'b', 'e', NULL, 'session_started', 'completed', 's', '{{}}', \
             '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', \
             '{{}}', '{{}}', '{{}}', '{{}}'"
        ),
    );
    for plan in [&sweep, &open] {
        assert!(!plan.contains("Seq Scan on alert"), "{plan}");
    }
    for index in [
        "alert_sessions_open",
        "alert_sessions_unsettled",
        "alerts_waiting",
        "alerts_pkey",
    ] {
        assert!(sweep.contains(index), "no {index} in\n{sweep}");
    }
    for index in [
        "alert_sessions_open",
        "alert_sessions_completed",
        "alert_sessions_limited_route",
        "alerts_pkey",
    ] {
        assert!(open.contains(index), "no {index} in\n{open}");
    }
}

#[tokio::test]
async fn a_claim_of_notifications_reads_only_those_that_wait() {
    let database = TestDatabase::create().await;
    database.execute(HISTORY);
    let claim = include_str!("../../../../../crates/store/src/sql/notify_claim.sql");
    let id = "'019ab000-0000-7000-8000-000000000000'";
    let plan = plan(
        &database,
        claim,
        "text, bigint, uuid, float8",
        &format!("'ops', 8, {id}, 30"),
    );
    assert!(plan.contains("notifications_waiting"), "{plan}");
    assert!(!plan.contains("Seq Scan"), "{plan}");
}

#[tokio::test]
async fn checkpoints_and_renewals_stay_within_the_page() {
    let database = TestDatabase::create().await;
    let store = database.store();
    let (lease, executions) = running_session(&store, 1).await;
    for number in 1..=20 {
        store
            .append(lease, prompt(executions[0], number, "go on"))
            .await
            .unwrap();
        store.renew(vec![lease], LEASE).await.unwrap();
    }
    // A server process reports its statistics when it ends.
    drop(store);
    let updates = "SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'alert_sessions'";
    eventually("the statistics have all updates", async || {
        database.number(updates) >= 41
    })
    .await;
    // A row version sometimes finds its page full; with an index on a changed column all updates would leave the page.
    assert!(database.holds(
        "SELECT bool_and(n_tup_hot_upd >= 0.8 * n_tup_upd) FROM pg_stat_user_tables \
         WHERE relname IN ('alert_sessions', 'agent_executions')"
    ));
}
