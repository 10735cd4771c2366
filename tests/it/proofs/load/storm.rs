//! Many alerts of one fingerprint at once: 150 in the suite, 1,000 in the proof. `TARSY_LOAD_STORM` is their number,
//! `TARSY_LOAD_RACES` the number of rounds: in the suite as many as both workers need to win one, but at least eight.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;

use super::{Alert, assert_all_completed, ended, paced, publish};
use crate::support::figures::{Figures, by_depth};
use crate::support::process::Tarsy;
use crate::support::stream::{Timelines, join_events};
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::{eventually, eventually_within};

const STORM: usize = 150;
const STORM_IN_PROOF: usize = 1000;
const RACES: usize = 8;
const RACES_IN_PROOF: usize = 30;
const IN_A_RACE: usize = 12;
const ANSWERS: usize = 2;
/// A call that is held for longer fails, because an iteration may take two minutes.
const WHILE_HELD: Duration = Duration::from_secs(100);
/// The gate at which every investigation is held open.
const HELD: &str = "answer-0-start";

async fn two_workers(system: &TestSystem) -> [Tarsy; 2] {
    [system.worker("w1").await.0, system.worker("w2").await.0]
}

fn setup() -> Setup<'static> {
    let transcript = Some(paced(ANSWERS, Duration::ZERO));
    Setup {
        watched: &[HELD],
        lease: Duration::from_secs(30),
        slots: 16,
        transcript,
        ..Setup::default()
    }
}

/// Asserts that all other alerts joined one session, with an event on the subject of each.
fn assert_one_investigation(timelines: &Timelines, alerts: &[SessionId]) -> SessionId {
    let opened = |id: &&SessionId| timelines[id][0].event_type == EventType::SessionStarted;
    let sessions: Vec<&SessionId> = alerts.iter().filter(opened).collect();
    let [session] = sessions.as_slice() else {
        panic!("{} investigations: {sessions:?}", sessions.len())
    };
    for alert in alerts.iter().filter(|alert| alert != session) {
        let events: Vec<_> = timelines[alert]
            .iter()
            .map(|event| (&event.event_type, event.session_seq))
            .collect();
        assert_eq!(events, [(&EventType::Joined, 1)], "{alert}");
        assert_eq!(
            timelines[alert][0].metadata["joined_session_id"],
            session.to_string()
        );
    }
    let joined = timelines[session]
        .iter()
        .filter(|event| event.event_type == EventType::AlertJoined);
    let mut named: Vec<_> = joined
        .map(|event| event.metadata["alert_id"].as_str().unwrap().to_owned())
        .collect();
    let others: HashSet<String> = alerts
        .iter()
        .filter(|id| id != session)
        .map(ToString::to_string)
        .collect();
    assert!(named.iter().all(|id| others.contains(id)), "{named:?}");
    assert_eq!(named.len(), join_events(others.len()));
    named.sort_unstable();
    named.dedup();
    assert_eq!(
        named.len(),
        join_events(others.len()),
        "the session has one event for an alert"
    );
    **session
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_one_fingerprint_opens_one_session_and_each_alert_has_an_event() {
    let count = by_depth("TARSY_LOAD_STORM", STORM, STORM_IN_PROOF);
    let mut system = TestSystem::start_with(setup()).await;
    let _workers = two_workers(&system).await;
    let jetstream = system.jetstream().await;
    let began = Instant::now();
    let alert = Alert {
        subject: "tarsy.alerts.high.storm",
        fingerprint: Some("storm"),
        ..Alert::default()
    };
    let alerts = join_all((0..count).map(|_| publish(&jetstream, alert))).await;
    let alerts: Vec<SessionId> = alerts.into_iter().map(|(alert, _)| alert).collect();
    let published = began.elapsed();
    let held = system.gates.next().await;
    let others = i64::try_from(count - 1).unwrap();
    let joined = "SELECT count(*) FROM alerts WHERE place = 'joined' AND settled_at IS NOT NULL";
    eventually_within(WHILE_HELD, "all alerts have joined", async || {
        system.database.number(joined) == others
    })
    .await;
    let all = began.elapsed();
    system.gates.open_all();
    held.open().await;
    ended(&system, 1).await;
    system.queue_is_empty().await;
    let timelines = system.assert_all_invariants().await;
    assert_one_investigation(&timelines, &alerts);
    assert_all_completed(&system, 1);
    let rate = count as f64 / all.as_secs_f64();
    println!(
        "a storm of {count} alerts: published in {published:.1?}, all joined after {all:.1?} ({rate:.0}/s), \
         over after {:.1?}",
        began.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_workers_racing_for_one_fingerprint_open_one_investigation_in_every_round() {
    let rounds = by_depth("TARSY_LOAD_RACES", RACES, RACES_IN_PROOF);
    let mut system = TestSystem::start_with(setup()).await;
    let _workers = two_workers(&system).await;
    let jetstream = system.jetstream().await;
    let (mut storms, mut times) = (Vec::new(), Figures::default());
    let opened_by = "SELECT count(DISTINCT worker_name) FROM alert_sessions";
    let have_both_won = || system.database.number(opened_by) == 2;
    while storms.len() < rounds || (storms.len() < RACES_IN_PROOF && !have_both_won()) {
        let round = storms.len();
        let fingerprint = format!("race-{round}");
        let began = Instant::now();
        let alert = Alert {
            fingerprint: Some(&fingerprint),
            ..Alert::default()
        };
        let alerts = join_all((0..IN_A_RACE).map(|_| publish(&jetstream, alert))).await;
        let held = system.gates.next().await;
        let joined = format!(
            "SELECT count(*) FROM alerts WHERE fingerprint LIKE '%:{fingerprint}' AND place = 'joined' AND settled_at IS NOT NULL"
        );
        let others = i64::try_from(IN_A_RACE - 1).unwrap();
        eventually("all other alerts have joined", async || {
            system.database.number(&joined) == others
        })
        .await;
        times.add(began.elapsed());
        held.open().await;
        storms.push(
            alerts
                .into_iter()
                .map(|(alert, _)| alert)
                .collect::<Vec<_>>(),
        );
    }
    let rounds = storms.len();
    ended(&system, rounds).await;
    system.queue_is_empty().await;
    let timelines = system.assert_all_invariants().await;
    let sessions: Vec<SessionId> = storms
        .iter()
        .map(|alerts| assert_one_investigation(&timelines, alerts))
        .collect();
    assert_eq!(
        system
            .database
            .number("SELECT count(*) FROM alert_sessions"),
        i64::try_from(sessions.len()).unwrap()
    );
    assert_all_completed(&system, rounds);
    println!("{rounds} races of {IN_A_RACE} alerts for two workers, all joined after: {times}");
    assert!(
        system.database.number(opened_by) == 2,
        "one worker won every race"
    );
}
