//! A rolling restart of all workers: two with twelve investigations in the suite, three with fifty in the proof.

use std::time::{Duration, Instant};

use tarsy_core::timeline::{EventType, TimelineEvent};

use super::{assert_all_completed, ended, paced, publish_many};
use crate::support::figures::{Figures, between, is_proof};
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually;

const SESSIONS: usize = 12;
const SESSIONS_IN_PROOF: usize = 50;
const WORKERS: usize = 2;
const WORKERS_IN_PROOF: usize = 3;
const ANSWERS: usize = 9;
const CALL: Duration = Duration::from_millis(1500);
/// Time for a release and the next claim.
const MARGIN: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_delays_no_investigation_by_more_than_the_drain_of_one_call() {
    let (sessions, workers) = if is_proof() {
        (SESSIONS_IN_PROOF, WORKERS_IN_PROOF)
    } else {
        (SESSIONS, WORKERS)
    };
    let transcript = Some(paced(ANSWERS, CALL));
    let system = TestSystem::start_with(Setup {
        lease: Duration::from_secs(30),
        slots: 20,
        transcript,
        ..Setup::default()
    })
    .await;
    let mut leaving = Vec::new();
    for number in 0..workers {
        leaving.push(system.worker(&format!("old{number}")).await.0);
    }
    publish_many(&system, sessions).await;
    let calling =
        "SELECT count(*) FROM agent_executions WHERE status = 'running' AND checkpoint > 1";
    let all = i64::try_from(sessions).unwrap();
    eventually("every session makes progress", async || {
        system.database.number(calling) == all
    })
    .await;

    let rolling = Instant::now();
    let (mut replacements, mut exits) = (Vec::new(), Figures::default());
    for (number, mut old) in leaving.into_iter().enumerate() {
        replacements.push(system.worker(&format!("new{number}")).await.0);
        let terminated = Instant::now();
        old.terminate();
        assert_eq!(old.finished().await.0, 0, "{}", old.log());
        exits.add(terminated.elapsed());
    }
    let rolled = rolling.elapsed();
    ended(&system, sessions).await;
    system.queue_is_empty().await;
    let timelines = system.assert_all_invariants().await;
    assert_all_completed(&system, sessions);

    let (mut stalls, mut gaps, mut usual) =
        (Figures::default(), Figures::default(), Figures::default());
    let mut handed_over = 0;
    for events in timelines.values() {
        usual.add(longest_step(events));
        let resumed = events
            .iter()
            .filter(|event| event.event_type == EventType::SessionResumed);
        assert!(
            resumed
                .clone()
                .all(|event| event.metadata["reason"] == "released")
        );
        handed_over += usize::from(resumed.clone().next().is_some());
        for resumed in resumed {
            let (stall, gap) = stall_and_gap(events, resumed);
            stalls.add(stall);
            gaps.add(gap);
        }
    }
    println!(
        "{workers} workers replaced in {rolled:.1?} under {sessions} sessions, {handed_over} of them handed over, calls of {CALL:?}\n  \
         exit after SIGTERM:                       {exits}\n  \
         from the last step to the resumption:     {stalls}\n  \
         from the last step to the next one:       {gaps}\n  \
         the longest step of one worker:           {usual}",
    );
    assert!(
        handed_over >= sessions * 4 / 5,
        "the rollout took longer than the investigations"
    );
    // A step takes as long as a call in any case; the rest is the delay. A busy machine delays the steps of one worker,
    // too.
    let call = CALL.max(usual.worst());
    assert!(
        gaps.worst() <= call + call + MARGIN,
        "delayed by more than the drain of one call"
    );
    assert!(stalls.worst() <= call + MARGIN);
}

/// The longest time between two events of an execution without a hand-over in between.
fn longest_step(events: &[TimelineEvent]) -> Duration {
    let steps = events
        .windows(2)
        .filter(|pair| pair.iter().all(|event| event.execution_id.is_some()));
    steps
        .map(|pair| between(pair[0].created_at, pair[1].created_at))
        .max()
        .unwrap_or_default()
}

/// The time without progress before a session was resumed, and the time until its next step.
fn stall_and_gap(events: &[TimelineEvent], resumed: &TimelineEvent) -> (Duration, Duration) {
    let step = |event: &&TimelineEvent| event.execution_id.is_some();
    let before = events
        .iter()
        .filter(|event| event.session_seq < resumed.session_seq)
        .rfind(step)
        .unwrap();
    let after = events
        .iter()
        .filter(|event| event.session_seq > resumed.session_seq)
        .find(step)
        .unwrap();
    (
        between(before.created_at, resumed.created_at),
        between(before.created_at, after.created_at),
    )
}
