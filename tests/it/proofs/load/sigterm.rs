//! Repeated SIGTERM during investigations: five in the suite, twelve in the proof; `TARSY_LOAD_ROUNDS=300` makes the
//! test long.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;
use tokio::task::JoinSet;

use super::{Published, assert_all_completed, ended, first, paced, publish_many};
use crate::support::figures::{Figures, between, by_depth};
use crate::support::process::Tarsy;
use crate::support::stream::Timelines;
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually;

const ROUNDS: usize = 5;
const ROUNDS_IN_PROOF: usize = 12;
const OPEN: usize = 6;
const ANSWERS: usize = 12;
const CALL: Duration = Duration::from_millis(150);
/// A worker is terminated in the first half of a session, whose rest is the time in which the signal arrives.
const YOUNG: &str = "SELECT count(*) FROM alert_sessions JOIN stages USING (session_id) \
                     WHERE alert_sessions.status = 'running' \
                     AND clock_timestamp() - stages.started_at < interval '900 ms'";
/// No lease expires during the test, so every takeover follows a release.
const LEASE: Duration = Duration::from_secs(30);
const RESUMED_WITHIN: Duration = Duration::from_secs(1);
/// The limit for a resumption on an overloaded machine.
const WORST_WITHIN: Duration = Duration::from_secs(5);
/// The part of the resumptions that are within the shorter limit.
const MOST: f64 = 0.9;

/// A release in the log of a terminated worker.
struct Release {
    worker: String,
    session: SessionId,
    at: DateTime<Utc>,
    /// The time when the worker's process exited.
    exited_at: DateTime<Utc>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeated_sigterms_strand_no_alert_and_sessions_resume_within_a_second() {
    let rounds = by_depth("TARSY_LOAD_ROUNDS", ROUNDS, ROUNDS_IN_PROOF);
    let setup = Setup {
        lease: LEASE,
        slots: 12,
        transcript: Some(paced(ANSWERS, CALL)),
        ..Setup::default()
    };
    let system = TestSystem::start_with(setup).await;
    let began = Instant::now();
    let (mut older, mut newer) = (system.worker("w0").await.0, system.worker("w1").await.0);
    let (mut published, mut exits) = (Published::new(), JoinSet::new());
    for round in 0..rounds {
        let name = format!("w{round}");
        let next = system.worker(&format!("w{}", round + 2)).await.0;
        let young = format!("{YOUNG} AND worker_name = '{name}'");
        eventually(&format!("{name} has begun a session"), async || {
            top_up(&system, &mut published).await;
            system.database.number(&young) > 0
        })
        .await;
        older.terminate();
        let leaving = std::mem::replace(&mut older, std::mem::replace(&mut newer, next));
        leaving.logged("SIGTERM").await;
        let left = format!(
            "SELECT count(*) FROM alert_sessions WHERE status = 'running' AND worker_name = '{name}'"
        );
        eventually(
            &format!("the sessions of {name} continue elsewhere"),
            async || system.database.number(&left) == 0,
        )
        .await;
        let counted = system
            .database
            .number("SELECT coalesce(max(attempts), 0)::bigint FROM alert_sessions");
        assert!(counted <= 1, "{counted} attempts were counted");
        exits.spawn(exit(name, leaving));
    }
    ended(&system, published.len()).await;
    let released: Vec<Release> = exits.join_all().await.into_iter().flatten().collect();
    system.queue_is_empty().await;
    let timelines = system.assert_all_invariants().await;
    assert_all_completed(&system, published.len());
    assert_no_call_is_repeated(&system);

    let (from_release, from_exit) = resumptions(&timelines, &released);
    let starts: Figures = published
        .iter()
        .map(|(session, at)| start_of(&timelines, *session, *at))
        .collect();
    println!(
        "{rounds} SIGTERMs in {:.1?}, {} sessions, {} hand-overs\n  resumed after the release: {from_release}\n  \
         resumed after the exit:      {from_exit}\n  begun after the publish:     {starts}",
        began.elapsed(),
        published.len(),
        released.len(),
    );
    assert!(
        released.len() >= rounds,
        "a worker had no session to release"
    );
    // On a busy machine a new alert waits as well.
    let busy = starts.quantile(MOST);
    assert!(
        from_release.quantile(MOST) <= RESUMED_WITHIN + busy
            && from_exit.quantile(MOST) <= RESUMED_WITHIN + busy
    );
    assert!(
        from_release.worst() <= WORST_WITHIN + busy && from_exit.worst() <= WORST_WITHIN + busy
    );
    assert!(
        starts.worst() < LEASE / 3,
        "an alert waited for a worker that had exited"
    );
}

/// Publishes alerts until [`OPEN`] sessions are open again.
async fn top_up(system: &TestSystem, published: &mut Published) {
    let over = system
        .database
        .number("SELECT count(*) FROM alert_sessions WHERE status <> 'running'");
    let open = published.len() - usize::try_from(over).unwrap();
    published.extend(publish_many(system, OPEN.saturating_sub(open)).await);
}

async fn exit(worker: String, mut leaving: Tarsy) -> Vec<Release> {
    assert_eq!(leaving.finished().await.0, 0, "{}", leaving.log());
    let exited_at = Utc::now();
    let log = leaving.log();
    let lines = log
        .lines()
        .filter(|line| line.contains("session released: draining"));
    let released = lines.map(|line| {
        let at = line.split_whitespace().next().unwrap().parse().unwrap();
        let id = line
            .split("session_id=")
            .nth(1)
            .unwrap()
            .split_whitespace()
            .next()
            .unwrap();
        Release {
            worker: worker.clone(),
            session: SessionId::parse(id).unwrap(),
            at,
            exited_at,
        }
    });
    released.collect()
}

/// The times without an owner of a session: since the log line of its release, and since the exit of its worker.
fn resumptions(timelines: &Timelines, released: &[Release]) -> (Figures, Figures) {
    let (mut from_release, mut from_exit) = (Figures::default(), Figures::default());
    for release in released {
        let events = &timelines[&release.session];
        let resumed = events.iter().find(|event| {
            event.event_type == EventType::SessionResumed
                && event.metadata["previous_worker"] == release.worker.as_str()
        });
        let resumed = resumed
            .unwrap_or_else(|| panic!("{} of {} was not resumed", release.session, release.worker));
        assert_eq!(resumed.metadata["reason"], "released");
        from_release.add(between(release.at, resumed.created_at));
        from_exit.add(between(release.exited_at, resumed.created_at));
    }
    let all = timelines
        .values()
        .flatten()
        .filter(|event| event.event_type == EventType::SessionResumed)
        .count();
    assert_eq!(all, released.len(), "every takeover follows a release");
    (from_release, from_exit)
}

fn start_of(timelines: &Timelines, session: SessionId, published: DateTime<Utc>) -> Duration {
    between(
        published,
        first(&timelines[&session], EventType::SessionStarted)
            .unwrap()
            .created_at,
    )
}

/// A drain lets the call in flight finish, so no call is repeated.
fn assert_no_call_is_repeated(system: &TestSystem) {
    let mut calls = BTreeMap::<String, u32>::new();
    for line in std::fs::read_to_string(system.file("model_calls"))
        .unwrap()
        .lines()
    {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        *calls
            .entry(format!("{} {}", line["execution_id"], line["index"]))
            .or_default() += 1;
    }
    calls.retain(|_, count| *count > 1);
    assert_eq!(
        calls,
        BTreeMap::new(),
        "calls that were made more than once"
    );
}
