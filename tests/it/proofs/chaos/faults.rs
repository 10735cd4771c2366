//! Injects the planned faults, and measures the time until the affected part works again.
//!
//! A recovery is the time from the end of a fault (kill, restart, repaired link) to the first proof of work.
//! Worker: each session that it owned has a new owner, has written or has ended; without one, a process is ready.
//! Database: any session has written. LLM service and the link to it: a model's answer is written.
//! Broker and streams: a claim. Other links of a worker, and its tools: one of its sessions has written.

use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::load::TestBed;
use super::observer::{SessionProgress, Snapshot};
use super::plan::{Fault, Planned, Server, Stream};
use super::print_progress;
use crate::support::link::Mode;

const RECOVERY_WITHIN: Duration = Duration::from_secs(60);

/// A fault that was injected.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct InjectedFault {
    pub(super) fault: Fault,
    pub(super) from: DateTime<Utc>,
    pub(super) until: DateTime<Utc>,
    /// `None` if the target has not recovered within a minute or before the end of the run.
    pub(super) recovery: Option<Duration>,
}

/// The progress of a run, between its faults and its load.
pub(super) struct Progress {
    /// The number of ended faults.
    pub(super) ended: watch::Sender<usize>,
    /// Cancelled when all work has ended.
    pub(super) idle: CancellationToken,
}

/// Runs the whole plan; returns when each fault has ended and its target has recovered, or all work has ended.
pub(super) async fn run(
    bed: &TestBed,
    planned: Vec<Planned>,
    began: Instant,
    progress: Progress,
) -> Vec<InjectedFault> {
    let all = planned.len();
    let numbered = planned.into_iter().enumerate().map(|(number, planned)| {
        let Progress { ended, idle } = &progress;
        async move {
            tokio::time::sleep_until(began + planned.at).await; // the plan
            let (at, fault) = (began.elapsed().as_secs_f64(), planned.fault);
            print_progress(&format!(
                "{at:>6.1} s  fault {:>3}/{all}  {fault}",
                number + 1
            ));
            let (injected, measured) = inject(bed, planned).await;
            ended.send_modify(|count| *count += 1);
            let injected = injected?;
            let recovery = idle
                .run_until_cancelled(tokio::time::timeout(RECOVERY_WITHIN, measured))
                .await;
            Some(InjectedFault {
                recovery: recovery.and_then(Result::ok),
                ..injected
            })
        }
    });
    // One task suffices, because it only waits.
    let mut injected: Vec<InjectedFault> = join_all(numbered).await.into_iter().flatten().collect();
    injected.sort_by_key(|one| one.from);
    injected
}

/// Injects a fault and returns the measurement of its recovery. Without a fault if it could not happen.
async fn inject(
    bed: &TestBed,
    Planned { lasts, fault, .. }: Planned,
) -> (Option<InjectedFault>, impl Future<Output = Duration>) {
    let system = &bed.system;
    let before = bed.observer.latest();
    let name = affected_worker(fault)
        .map(|worker| system.workers[worker].state().name)
        .unwrap_or_default();
    let mut from = Some(Utc::now());
    match fault {
        Fault::KillWorker(worker) => system.workers[worker].kill(lasts).await,
        Fault::TerminateWorker(worker) => system.workers[worker].terminate(lasts).await,
        Fault::StopWorker(worker) => {
            system.workers[worker].pause().await;
            tokio::time::sleep(lasts).await; // the fault itself
            system.workers[worker].resume().await;
        }
        Fault::KillToolServer(worker) => system.workers[worker].kill_tool_server().await,
        Fault::Kill(Server::Broker) => system.kill_broker(lasts).await,
        Fault::Kill(Server::Database) => system.kill_database(lasts).await,
        Fault::Kill(Server::LlmService) => system.kill_llm_service(lasts).await,
        Fault::Freeze(Server::LlmService) => system.freeze_llm_service(lasts).await,
        Fault::Freeze(Server::Broker | Server::Database) => system.freeze_broker(lasts).await,
        Fault::KillBackend => system.kill_backend().await,
        Fault::FailOver => from = system.fail_over(lasts).await,
        Fault::Purge(stream) => purge(bed, stream).await,
        Fault::LoseStreams => {
            bed.shared_ledger
                .lose(system, system.lose_streams(lasts))
                .await
        }
        Fault::Link(worker, server, mode) => {
            let link = system.workers[worker].link(server);
            link.set(mode);
            tokio::time::sleep(lasts).await; // the fault itself
            link.set(Mode::Open);
        }
        Fault::WatchLink(mode) => {
            system.watch_link.set(mode);
            tokio::time::sleep(lasts).await; // the fault itself
            system.watch_link.set(Mode::Open);
        }
    }
    let (until, ended) = (Utc::now(), Instant::now());
    let measured = async move {
        recovered(bed, fault, &name, before).await;
        ended.elapsed()
    };
    let injected = from.map(|from| InjectedFault {
        fault,
        from,
        until,
        recovery: None,
    });
    (injected, measured)
}

/// The worker that a fault affects.
fn affected_worker(fault: Fault) -> Option<usize> {
    match fault {
        Fault::KillWorker(worker)
        | Fault::StopWorker(worker)
        | Fault::TerminateWorker(worker)
        | Fault::KillToolServer(worker)
        | Fault::Link(worker, _, _) => Some(worker),
        Fault::Kill(_)
        | Fault::Freeze(_)
        | Fault::KillBackend
        | Fault::FailOver
        | Fault::Purge(_)
        | Fault::LoseStreams
        | Fault::WatchLink(_) => None,
    }
}

async fn purge(bed: &TestBed, stream: Stream) {
    let purged = Box::pin(empty(&bed.system.nats_url, stream));
    match stream {
        // Until the first statement of a worker only the stream has an alert.
        Stream::Alerts => bed.shared_ledger.lose(&bed.system, purged).await,
        Stream::Timeline | Stream::Control => purged.await,
    }
}

async fn empty(nats_url: &str, stream: Stream) {
    // A paused broker keeps its messages. The plan does not combine the two faults, but a restart may take long.
    let Ok(client) = async_nats::connect(nats_url).await else {
        return;
    };
    if let Ok(found) = async_nats::jetstream::new(client)
        .get_stream(stream.name())
        .await
    {
        found.purge().await.ok();
    }
}

/// Returns when the affected part is proven to work.
async fn recovered(bed: &TestBed, fault: Fault, name: &str, before: Snapshot) {
    let observer = &bed.observer;
    match fault {
        Fault::KillWorker(_) | Fault::TerminateWorker(_) | Fault::StopWorker(_) => {
            let owned: Vec<(Uuid, SessionProgress)> = before
                .iter()
                .filter(|(_, seen)| is_of(seen, name))
                .map(|(id, seen)| (*id, seen.clone()))
                .collect();
            if owned.is_empty() {
                if !matches!(fault, Fault::StopWorker(_)) {
                    bed.system.workers[affected_worker(fault).unwrap_or_default()]
                        .succeeded(name)
                        .await;
                }
                return;
            }
            observer
                .until(|now| {
                    owned
                        .iter()
                        .all(|(id, old)| now.get(id).is_none_or(|now| goes_on(old, now)))
                })
                .await;
        }
        Fault::Kill(Server::Database) | Fault::KillBackend | Fault::FailOver => {
            let then = observer.latest();
            observer
                .until(|now| now.iter().any(|(id, seen)| wrote(then.get(id), seen)))
                .await;
        }
        Fault::Kill(Server::LlmService) | Fault::Freeze(Server::LlmService) => {
            let then = observer.latest();
            observer
                .until(|now| now.iter().any(|(id, seen)| answered(then.get(id), seen)))
                .await;
        }
        Fault::Kill(Server::Broker) | Fault::Freeze(_) | Fault::Purge(_) | Fault::LoseStreams => {
            let then = observer.latest();
            observer
                .until(|now| now.iter().any(|(id, seen)| claimed(then.get(id), seen)))
                .await;
        }
        Fault::Link(worker, Server::LlmService, _) => works(bed, worker, answered).await,
        Fault::Link(worker, ..) | Fault::KillToolServer(worker) => works(bed, worker, wrote).await,
        // The checker examines the watchers.
        Fault::WatchLink(_) => {}
    }
}

/// Waits until a session of this worker has written, or until the worker has no session and is ready.
async fn works(
    bed: &TestBed,
    worker: usize,
    did: impl Fn(Option<&SessionProgress>, &SessionProgress) -> bool,
) {
    let (observer, worker) = (&bed.observer, &bed.system.workers[worker]);
    let then = observer.latest();
    loop {
        let name = worker.state().name;
        let (mut idle, mut done) = (true, false);
        observer
            .look(|now| {
                idle = !now.values().any(|seen| is_of(seen, &name));
                done = now
                    .iter()
                    .any(|(id, seen)| seen.worker_name == name && did(then.get(id), seen));
            })
            .await;
        if done || (idle && worker.takes_work().await) {
            return;
        }
    }
}

fn is_of(seen: &SessionProgress, name: &str) -> bool {
    seen.running && seen.owned && seen.worker_name == name
}

fn goes_on(old: &SessionProgress, now: &SessionProgress) -> bool {
    !now.running
        || (now.owned && now.lease_epoch > old.lease_epoch)
        || now.event_seq > old.event_seq
}

fn wrote(old: Option<&SessionProgress>, now: &SessionProgress) -> bool {
    old.is_none_or(|old| now.event_seq > old.event_seq)
}

fn answered(old: Option<&SessionProgress>, now: &SessionProgress) -> bool {
    now.answers > old.map_or(0, |old| old.answers)
}

fn claimed(old: Option<&SessionProgress>, now: &SessionProgress) -> bool {
    now.running && old.is_none_or(|old| now.lease_epoch > old.lease_epoch)
}
