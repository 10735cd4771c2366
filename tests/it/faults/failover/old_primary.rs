//! The old primary comes back while workers still have its address.

use std::time::Duration;

use super::{CALLED, Pair, arrivals};
use crate::support::wait::eventually;
use crate::web::Web;

const SESSIONS: usize = 4;
/// Everything that a worker writes: the rows of sessions, and those of its probes.
const WRITTEN: &str = "SELECT md5(coalesce((SELECT string_agg(s::text, ' ' ORDER BY s.session_id) FROM alert_sessions s), '') \
    || coalesce((SELECT string_agg(t::text, ' ' ORDER BY t.session_id, t.session_seq) FROM timeline_events t), '') \
    || coalesce((SELECT string_agg(p::text, ' ' ORDER BY p.slot) FROM store_probes p), ''))";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_primary_that_comes_back_gets_no_write() {
    let Some(mut pair) = Pair::start(2 * SESSIONS, &[CALLED]).await else {
        return;
    };
    let worker = pair.worker("w1").await;
    pair.publish_many(0..SESSIONS).await;
    let mut called = arrivals(&mut pair.system, SESSIONS).await;
    pair.standby.has_everything(&pair.primary).await;
    pair.fail_over().await;
    pair.primary.restart().await;
    let old = pair.on(&pair.primary);
    let before = old.text(WRITTEN);

    // A new worker, and new connections of a worker that has used both servers.
    let other = pair.worker("w2").await;
    pair.system.database.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'tarsy%' AND pid <> pg_backend_pid()",
    );
    pair.publish_many(SESSIONS..2 * SESSIONS).await;
    called.extend(arrivals(&mut pair.system, SESSIONS).await);
    for call in called {
        call.open().await;
    }
    pair.all_settled().await;
    pair.system.assert_all_invariants().await;
    pair.assert_calls_sent_once(2 * SESSIONS);
    assert_eq!(old.text(WRITTEN), before, "{}{}", worker.log(), other.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_leave_a_primary_that_runs_on_when_its_standby_is_promoted() {
    let Some(mut pair) = Pair::start(SESSIONS, &[CALLED]).await else {
        return;
    };
    let worker = pair.worker("w1").await;
    pair.publish_many(0..SESSIONS).await;
    let called = arrivals(&mut pair.system, SESSIONS).await;
    pair.standby.has_everything(&pair.primary).await;
    pair.standby.promote();
    worker.logged("database failed over").await;
    let probes = "SELECT count(*) FROM store_probes WHERE written_at > now() - interval '5 s'";
    let promoted = pair.on(&pair.standby.server);
    eventually("the worker writes to the promoted server", async || {
        promoted.number(probes) > 0
    })
    .await;
    for call in called {
        call.open().await;
    }
    let left = "SELECT count(*) FROM alerts WHERE settled_at IS NULL";
    eventually("every alert is settled there", async || {
        promoted.number(left) == 0
    })
    .await;
    let old = pair.on(&pair.primary);
    assert_eq!(
        old.number(left),
        SESSIONS as i64,
        "nothing is written to the old primary"
    );
    pair.assert_calls_sent_once(SESSIONS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_web_server_that_only_reads_leaves_a_superseded_primary() {
    // No lease expires, also on a busy machine: a session that is taken over does not send its call again.
    let lease = Duration::from_secs(30);
    let Some(mut pair) = Pair::start_with_lease(SESSIONS, &[CALLED], lease).await else {
        return;
    };
    let web = Web::start(&pair.system, &[("DATABASE_URL", &pair.address)]).await;
    let _worker = pair.worker("w1").await;
    pair.publish_many(0..SESSIONS).await;
    let called = arrivals(&mut pair.system, SESSIONS).await;
    assert_eq!(web.json("/sessions").await["counts"]["running"], SESSIONS);
    pair.standby.has_everything(&pair.primary).await;
    pair.standby.promote();
    for call in called {
        call.open().await;
    }
    // The old primary runs on, and shows all of them as running for ever.
    eventually(
        "the web server reads from the promoted server",
        async || web.json("/sessions").await["counts"]["completed"] == SESSIONS,
    )
    .await;
}
