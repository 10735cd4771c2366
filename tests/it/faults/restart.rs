//! A worker that is killed and started again: in its pod its sessions continue at once; anywhere else they wait for the
//! lease. The pod is its uid and a directory.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use tarsy_bus::{NewAlert, Priority, SESSION_ID};
use tarsy_core::ids::{ExecutionId, SessionId};
use tarsy_core::timeline::{EventType, TimelineEvent};
use uuid::Uuid;

use super::survive::settled;
use crate::interfaces::commands::run;
use crate::support::process::{Tarsy, metric};
use crate::support::system::{Setup, TestSystem};
use crate::support::wait::eventually;

const NAME: &str = "tarsy-worker-0";
/// Longer than a start of a worker. The test of a restart waits for the redelivery of a message, which takes as long.
const LEASE: Duration = Duration::from_secs(10);
/// The time from the start of a process until its first sessions continue.
const AT_ONCE: Duration = Duration::from_secs(2);

/// The pod in which a worker runs.
pub(crate) struct Pod {
    uid: &'static str,
    state: PathBuf,
}

impl Pod {
    pub(crate) fn new(system: &TestSystem, uid: &'static str) -> Self {
        Self {
            uid,
            state: system.file(&format!("state-{uid}")),
        }
    }

    pub(crate) async fn start(&self, system: &TestSystem) -> (Tarsy, String) {
        let (env, state) = (
            system.env(system.database.url()),
            self.state.display().to_string(),
        );
        let env = [
            &env.each()[..],
            &[("TARSY_POD_UID", self.uid), ("TARSY_POD_STATE", &state)],
        ]
        .concat();
        let mut worker = Tarsy::spawn(NAME, &["worker", "--name", NAME], &env);
        let address = worker.ready().await;
        (worker, address)
    }
}

async fn start_system(slots: u32) -> TestSystem {
    TestSystem::start_with(Setup {
        lease: LEASE,
        slots,
        ..Setup::default()
    })
    .await
}

/// Publishes an alert of another fingerprint than the drill's, and waits until it is investigated.
async fn another_is_investigated(system: &TestSystem) {
    let session = SessionId(Uuid::now_v7());
    let headers = serde_json::json!({SESSION_ID: session.to_string()});
    let body = format!("disk full {session}").into_bytes();
    let alert = NewAlert {
        priority: Priority::Normal,
        suffix: "ci".parse().ok(),
        body,
        headers,
    };
    system.connect().await.publish_alert(alert).await.unwrap();
    assert_eq!(
        system.follow(session).await.finish().await.event_type,
        EventType::SessionCompleted
    );
}

/// Epoch, owner and end of the lease.
fn lease(system: &TestSystem, session: SessionId) -> String {
    let columns = "concat_ws(' ', lease_epoch, lease_owner, lease_expires_at)";
    system.database.text(&format!(
        "SELECT {columns} FROM alert_sessions WHERE session_id = '{}'",
        session.0
    ))
}

fn resumptions(seen: &[TimelineEvent]) -> Vec<&TimelineEvent> {
    seen.iter()
        .filter(|event| event.event_type == EventType::SessionResumed)
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_restarts_in_its_pod_goes_on_with_its_sessions_at_once() {
    let mut system = start_system(4).await;
    let pod = Pod::new(&system, "a");
    let (mut first, _) = pod.start(&system).await;
    let parent = system.publish().await;
    system.follow(parent).await.finish().await;

    // An alert in the middle of its second model call, and a question in the middle of its first one.
    system.gates.watch("answer-1-middle");
    let session = system.publish().await;
    let mut timeline = system.follow(session).await;
    let mut held = vec![system.gates.next().await];
    system.gates.watch("answer-0-middle");
    let asked = run(
        &system,
        &[
            "ask",
            &parent.to_string(),
            "Would a limit of 768Mi be enough?",
            "--no-watch",
            "--json",
        ],
    )
    .await
    .exits(0)
    .json();
    let question: SessionId = serde_json::from_value(asked[0]["session_id"].clone()).unwrap();
    let mut answer = system.follow(question).await;
    held.push(system.gates.next().await);
    first.kill().await;
    let killed = Instant::now();
    system.gates.open_all();
    drop(held);
    system.gates.watch("answer-2-start");

    let (second, metrics) = pod.start(&system).await;
    let ready = Instant::now();
    for resumed in [&mut timeline, &mut answer] {
        let event = resumed.until(EventType::SessionResumed).await;
        println!(
            "resumed {:.2} s after the kill, {:.2} s after the start",
            since(killed),
            since(ready)
        );
        assert!(ready.elapsed() < AT_ONCE, "{}", second.log());
        assert_eq!(
            (
                event.metadata["reason"].as_str(),
                event.metadata["epoch"].as_u64()
            ),
            (Some("restarted"), Some(2))
        );
        assert_eq!(
            event.content,
            format!("{NAME} died and was started again in its pod")
        );
    }

    // The question ends before its message is redelivered. The other session adopts its message while it runs.
    assert_eq!(
        answer.finish().await.event_type,
        EventType::SessionCompleted
    );
    settled(&system, question).await;
    let waiting = system.gates.next().await;
    let redelivered = async || metric(&metrics, "tarsy_alerts_redelivered_total", "").await >= 2.0;
    eventually("both messages are redelivered", redelivered).await;
    system.gates.open_all();
    waiting.open().await;
    assert_eq!(
        timeline.finish().await.event_type,
        EventType::SessionCompleted
    );
    settled(&system, session).await;
    system.queue_is_empty().await;
    for (session, seen) in [(session, &timeline.seen), (question, &answer.seen)] {
        assert_eq!(resumptions(seen).len(), 1, "{session}");
        system.assert_invariants(session, seen).await;
    }
    assert_eq!(
        system.model_calls_of(ExecutionId::derive(session, 1, 1)),
        [1, 2, 1, 1],
        "one model call is repeated"
    );
    let sent: u32 = system.tool_calls().values().sum();
    assert_eq!(
        sent,
        11,
        "five for each alert, and one for the question: {:?}",
        system.tool_calls()
    );
    assert_eq!(
        metric(&metrics, "tarsy_sessions_resumed_total", "").await,
        2.0
    );
}

fn since(instant: Instant) -> f64 {
    instant.elapsed().as_secs_f64()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_of_another_pod_or_with_an_equal_name_alone_waits_for_the_lease() {
    // Another uid with the same directory, and the same uid with another directory.
    tokio::join!(
        restart_elsewhere("b", "state-a"),
        restart_elsewhere("a", "elsewhere")
    );
}

/// Kills a worker of the pod `a`, and starts one of the same name with this uid and directory.
async fn restart_elsewhere(uid: &'static str, directory: &str) {
    let mut system = start_system(4).await;
    let (mut first, _) = Pod::new(&system, "a").start(&system).await;
    system.gates.watch("answer-1-middle");
    let session = system.publish().await;
    let mut timeline = system.follow(session).await;
    let held = system.gates.next().await;
    first.kill().await;
    let before = lease(&system, session);
    system.gates.open_all();
    drop(held);

    let other = Pod {
        uid,
        state: system.file(directory),
    };
    let _second = other.start(&system).await;
    another_is_investigated(&system).await;
    // On a machine that took longer than a lease for this the session is owned again.
    let end = before.splitn(3, ' ').last().expect("the end of the lease");
    let expired = format!("SELECT '{end}'::timestamptz <= clock_timestamp()");
    let now = lease(&system, session);
    assert!(
        now == before || system.database.holds(&expired),
        "{before} became {now}"
    );
    let resumed = timeline.until(EventType::SessionResumed).await;
    assert_eq!(resumed.metadata["reason"], "lease_expired");
    assert!(
        system.database.holds(&expired),
        "the lease is over: {before}"
    );
    assert_eq!(
        timeline.finish().await.event_type,
        EventType::SessionCompleted
    );
    settled(&system, session).await;
    system.assert_invariants(session, &timeline.seen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_in_a_living_pod_takes_nothing_over() {
    // The first worker is full, so the second one has to investigate the other alert.
    let mut system = start_system(1).await;
    let pod = Pod::new(&system, "a");
    let (first, _) = pod.start(&system).await;
    system.gates.watch("answer-1-middle");
    let session = system.publish().await;
    let mut timeline = system.follow(session).await;
    let held = system.gates.next().await;
    let owner = format!(
        "SELECT concat_ws(' ', lease_epoch, lease_owner) FROM alert_sessions WHERE session_id = '{}'",
        session.0
    );
    let before = system.database.text(&owner);

    let (second, _) = pod.start(&system).await;
    second.logged("another process of this pod runs").await;
    system.gates.open_all();
    another_is_investigated(&system).await;
    assert_eq!(system.database.text(&owner), before);
    held.open().await;
    assert_eq!(
        timeline.finish().await.event_type,
        EventType::SessionCompleted
    );
    settled(&system, session).await;
    system.assert_invariants(session, &timeline.seen).await;
    assert_eq!(resumptions(&timeline.seen), Vec::<&TimelineEvent>::new());
    drop(first);
}
