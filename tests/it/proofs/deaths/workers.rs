//! Workers that are killed, stopped and frozen, and an alert that kills them.

use std::time::Duration;

use chrono::Utc;

use super::bed::{Bed, SESSIONS};
use super::{Measured, PATIENT_LEASE, Pace};
use crate::faults::poison::{POISON, aborting_worker};
use crate::faults::restart::Pod;
use crate::proofs::load::publish_text;
use crate::support::figures::between;
use crate::support::system::Setup;

/// The heartbeat is a third of a lease old at most, and the broker checks deadlines once in a while.
const MARGIN: Duration = Duration::from_secs(10);

pub(super) async fn killed(pace: Pace) -> Vec<Measured> {
    let mut bed = Bed::start(pace, Setup::default()).await;
    let (victim, at) = (bed.busiest(), Utc::now());
    bed.workers[victim].kill().await;
    bed.end(2).await;
    let resumed = bed.resumed_after(at);
    assert!(
        !resumed.is_empty() && resumed.iter().all(|time| *time < pace.lease + MARGIN),
        "{resumed:?}"
    );
    vec![Measured::new(
        "its sessions are resumed by another worker",
        resumed,
    )]
}

pub(super) async fn restarted(pace: Pace) -> Vec<Measured> {
    let mut bed = Bed::idle(pace.patient(), Setup::default()).await;
    let pod = Pod::new(&bed.system, "a");
    bed.workers.push(pod.start(&bed.system).await.0);
    bed.publish(SESSIONS).await;
    bed.progressed().await;
    let at = Utc::now();
    bed.workers[0].kill().await;
    bed.workers[0] = pod.start(&bed.system).await.0;
    let ready = between(at, Utc::now());
    bed.end(2).await;
    let resumed = bed.resumed_after(at);
    assert!(
        resumed.len() == SESSIONS && resumed.iter().all(|time| *time < PATIENT_LEASE),
        "{resumed:?}"
    );
    vec![
        Measured::one("the new process is ready", ready),
        Measured::new("its sessions are resumed by the new process", resumed),
    ]
}

pub(super) async fn terminated(pace: Pace) -> Vec<Measured> {
    let mut bed = Bed::start(pace.patient(), Setup::default()).await;
    let mut leaving = bed.workers.remove(bed.busiest());
    let at = Utc::now();
    leaving.terminate();
    assert_eq!(leaving.finished().await.0, 0, "{}", leaving.log());
    let exited = between(at, Utc::now());
    bed.end(1).await;
    let resumed = bed.resumed_after(at);
    assert!(
        !resumed.is_empty() && resumed.iter().all(|time| *time < MARGIN),
        "{resumed:?}"
    );
    vec![
        Measured::new("its sessions are resumed by another worker", resumed),
        Measured::one("it has exited with code 0", exited),
    ]
}

pub(super) async fn frozen(pace: Pace) -> Vec<Measured> {
    let bed = Bed::start(pace, Setup::default()).await;
    let (victim, at) = (bed.busiest(), Utc::now());
    bed.workers[victim].pause();
    let name = ["w1", "w2"][victim];
    let owned =
        format!("SELECT FROM alert_sessions WHERE status = 'running' AND worker_name = '{name}'");
    bed.until(
        "its sessions are taken over",
        &format!("NOT EXISTS ({owned})"),
    )
    .await;
    bed.workers[victim].resume();
    bed.end(2).await;
    let resumed = bed.resumed_after(at);
    assert!(!resumed.is_empty(), "no session was taken over");
    vec![Measured::new(
        "its sessions are resumed by another worker",
        resumed,
    )]
}

pub(super) async fn all_killed(pace: Pace) -> Vec<Measured> {
    let mut bed = Bed::start(pace, Setup::default()).await;
    for worker in &mut bed.workers {
        worker.kill().await;
    }
    let waiting = bed.publish(1).await;
    tokio::time::sleep(pace.outage).await; // the outage itself
    let at = Utc::now();
    bed.add_worker("w3").await;
    let ready = between(at, Utc::now());
    bed.end(2).await;
    vec![
        Measured::one("the new worker is ready, after its start", ready),
        Measured::new(
            "all sessions are resumed, after its start",
            bed.resumed_after(at),
        ),
        Measured::new(
            "an alert that waited is opened, after its start",
            bed.opened_after(at, &waiting),
        ),
    ]
}

/// A worker that dies is started again at once; Kubernetes waits longer from death to death.
pub(super) async fn poisoned(pace: Pace) -> Vec<Measured> {
    let attempts = 5;
    let bed = Bed::idle(
        pace,
        Setup {
            attempts,
            ..Setup::default()
        },
    )
    .await;
    let env = bed.system.env(bed.system.database.url());
    let at = Utc::now();
    publish_text(&bed.system, std::str::from_utf8(POISON).unwrap()).await;
    let mut deaths = 0;
    let mut worker = aborting_worker("w1", &env.each());
    let given_up = bed.until(
        "the alert is given up",
        "EXISTS (SELECT FROM alerts WHERE settled_at IS NOT NULL)",
    );
    tokio::pin!(given_up);
    loop {
        tokio::select! {
            () = &mut given_up => break,
            _status = worker.ended() => {
                deaths += 1;
                worker = aborting_worker("w1", &env.each());
            }
        }
    }
    let after = between(at, Utc::now());
    assert_eq!(deaths, attempts, "one death is one attempt");
    let good = bed.publish(1).await;
    bed.end(1).await;
    assert_eq!(good.len(), 1);
    vec![Measured::one(
        "it is a dead letter, after five deaths",
        after,
    )]
}
