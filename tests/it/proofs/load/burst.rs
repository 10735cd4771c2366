//! Thousands of different alerts with critical ones in between: 1,000 in the suite, 5,000 in the proof. Both queue all
//! of them and end with the critical ones; with `TARSY_LOAD_BURST_TO_END=1` all are investigated, with quick answers.

use std::time::{Duration, Instant};

use chrono::DateTime;
use tokio_util::sync::CancellationToken;

use super::{Alert, assert_all_completed, ended, paced, publish, publish_many};
use crate::support::figures::{Figures, between, by_depth, from_env};
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::{eventually, eventually_within};

const BURST: usize = 1000;
const BURST_IN_PROOF: usize = 5000;
/// Before the burst, for comparison.
const CRITICAL_BEFORE: usize = 5;
const CRITICAL: usize = 10;
/// The factor by which a critical alert may wait longer than before the burst: for the machine, not for the alerts of
/// the burst.
const MAX_FACTOR: u32 = 20;
const MAX_DELAY: Duration = Duration::from_secs(1);
/// The answer of the other alerts outlasts the test. So without a reserved slot, or if another alert takes it, no
/// critical alert is ever claimed, on a machine of any speed.
const SLOW: Duration = Duration::from_secs(3_600);
const QUICK: Duration = Duration::ZERO;
const MAX_MEMORY_KIB: u64 = 200 * 1024;
/// The growth of the worker's memory that is allowed while thousands of alerts are queued.
const MAX_GROWTH_KIB: u64 = 32 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_of_alerts_does_not_fill_the_memory_or_delay_critical_alerts() {
    let count = by_depth("TARSY_LOAD_BURST", BURST, BURST_IN_PROOF);
    let to_end = from_env("TARSY_LOAD_BURST_TO_END", 0) == 1;
    let transcript = Some(paced(1, if to_end { QUICK } else { SLOW }));
    let setup = Setup {
        lease: Duration::from_secs(30),
        slots: 8,
        reserved: 1,
        transcript,
        ..Setup::default()
    };
    let system = TestSystem::start_with(setup).await;
    let (worker, _) = system.worker("w1").await;
    publish_many(&system, 7).await;
    let running = "SELECT count(*) FROM alert_sessions WHERE status = 'running'";
    if !to_end {
        eventually("every slot but the reserved one is taken", async || {
            system.database.number(running) == 7
        })
        .await;
    }
    let unloaded = critical_claims(&system, CRITICAL_BEFORE).await;
    let (pid, stop) = (worker.pid(), CancellationToken::new());
    let before = memory_kib(pid);
    let most = tokio::spawn(watch_memory(pid, stop.clone()));

    let began = Instant::now();
    publish_many(&system, count).await;
    let published = began.elapsed();
    let claims = critical_claims(&system, CRITICAL).await;
    let all = count + 7 + CRITICAL_BEFORE + CRITICAL;
    if to_end {
        let sql = "SELECT count(*) FROM alert_sessions WHERE settled_at IS NOT NULL";
        let timeout = Duration::from_secs(3600);
        let whole = i64::try_from(all).unwrap();
        eventually_within(timeout, "every session is settled", async || {
            system.database.number(sql) == whole
        })
        .await;
    }
    let took = began.elapsed();
    stop.cancel();
    let most = most.await.unwrap();
    let over = system
        .database
        .number("SELECT count(*) FROM alert_sessions WHERE status <> 'running'");
    println!(
        "{count} alerts published in {published:.1?}, {over} of {all} investigated in {took:.1?} ({:.0}/s)\n  \
         critical ones claimed after: {claims}; before the burst: {unloaded}\n  memory of the worker: {before:?} KiB before, at most {most:?} KiB",
        over as f64 / took.as_secs_f64(),
    );
    if !to_end {
        assert_eq!(
            system.database.number(running),
            7,
            "the critical alerts took the reserved slot and no other one"
        );
    }
    let limit = unloaded.worst() * MAX_FACTOR + MAX_DELAY;
    assert!(
        claims.median() <= limit,
        "the burst delays critical alerts: {claims}; before {unloaded}"
    );
    if let (Some(before), Some(most)) = (before, most) {
        assert!(most < MAX_MEMORY_KIB, "{most} KiB");
        assert!(
            to_end || most < before + MAX_GROWTH_KIB,
            "from {before} to {most} KiB with the backlog"
        );
    }
    if to_end {
        ended(&system, all).await;
        system.queue_is_empty().await;
        system.assert_all_invariants().await;
        assert_all_completed(&system, all);
    }
}

/// Publishes critical alerts, each after the end of the one before. Returns the times from the stream's ack to the
/// first event of the session.
async fn critical_claims(system: &TestSystem, count: usize) -> Figures {
    let jetstream = system.jetstream().await;
    let alert = Alert {
        subject: "tarsy.alerts.critical.burst",
        text: "a quick one",
        ..Alert::default()
    };
    let mut claims = Figures::default();
    for _ in 0..count {
        let (session, published) = publish(&jetstream, alert).await;
        let row = format!("session_id = '{}'", session.0);
        let ended =
            format!("SELECT count(*) = 1 FROM alert_sessions WHERE status <> 'running' AND {row}");
        eventually("a critical alert is investigated", async || {
            system.database.holds(&ended)
        })
        .await;
        let claimed = system.database.number(&format!(
            "SELECT (extract(epoch FROM created_at) * 1000000)::bigint FROM timeline_events WHERE session_seq = 1 AND {row}"
        ));
        claims.add(between(
            published,
            DateTime::from_timestamp_micros(claimed).unwrap(),
        ));
    }
    claims
}

/// The peak of the process's memory until `stop`.
async fn watch_memory(pid: u32, stop: CancellationToken) -> Option<u64> {
    let mut most = memory_kib(pid)?;
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    while stop.run_until_cancelled(ticks.tick()).await.is_some() {
        most = most.max(memory_kib(pid)?);
    }
    Some(most)
}

/// `None` if the kernel does not report it.
fn memory_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
