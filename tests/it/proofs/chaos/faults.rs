//! Injects the planned faults, and measures the time until the affected part works again.
//!
//! A recovery is the time from the end of a fault (the kill, the restart, the mended link) to the first proof of work.
//! Worker: each session that it owned has a new owner, has written or has ended; without one, a process is ready.
//! Database: any session has written. LLM service and the link to it: a model's answer is written.
//! Broker and streams: a claim. Other links of a worker, and its tools: one of its own sessions has written.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::link::Mode;
use super::load::Book;
use super::observer::{Observer, Seen, Snapshot};
use super::plan::{Fault, Planned, Server, Stream};
use super::system::System;
use super::tell;

const RECOVERY_WITHIN: Duration = Duration::from_secs(60);

/// A fault that was injected.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Happened {
    pub(super) fault: Fault,
    pub(super) from: DateTime<Utc>,
    pub(super) until: DateTime<Utc>,
    /// `None` without a proof within a minute or before the end of the run.
    pub(super) recovery: Option<Duration>,
}

/// The system and the parts that faults act on.
#[derive(Clone)]
pub(super) struct Stand {
    pub(super) system: Arc<System>,
    pub(super) observer: Arc<Observer>,
    pub(super) book: Arc<Book>,
}

/// Runs the whole plan; returns when each fault has ended and recovered, or at `idle`, when all work has ended.
/// `over` counts the ended faults.
pub(super) async fn run(
    stand: &Stand,
    planned: Vec<Planned>,
    began: Instant,
    (over, idle): (watch::Sender<usize>, CancellationToken),
) -> Vec<Happened> {
    let all = planned.len();
    let numbered = planned.into_iter().enumerate().map(|(number, planned)| {
        let (over, idle) = (&over, &idle);
        async move {
            tokio::time::sleep_until(began + planned.at).await; // the plan
            let (at, fault) = (began.elapsed().as_secs_f64(), planned.fault);
            tell(&format!("{at:>6.1} s  fault {:>3}/{all}  {fault}", number + 1));
            let (happened, measured) = inject(stand, planned).await;
            over.send_modify(|count| *count += 1);
            let recovery = idle.run_until_cancelled(tokio::time::timeout(RECOVERY_WITHIN, measured)).await;
            Happened { recovery: recovery.and_then(Result::ok), ..happened }
        }
    });
    // One task suffices, because it only waits.
    let mut happened = join_all(numbered).await;
    happened.sort_by_key(|one| one.from);
    happened
}

/// Injects a fault and waits for the recovery.
async fn inject(stand: &Stand, Planned { lasts, fault, .. }: Planned) -> (Happened, impl Future<Output = Duration>) {
    let system = &stand.system;
    let before = stand.observer.latest();
    let name = hit(fault).map(|worker| system.workers[worker].standing().name).unwrap_or_default();
    let from = Utc::now();
    match fault {
        Fault::KillWorker(worker) => system.workers[worker].kill(lasts).await,
        Fault::TerminateWorker(worker) => system.workers[worker].terminate(lasts).await,
        Fault::StopWorker(worker) => {
            system.workers[worker].stop().await;
            tokio::time::sleep(lasts).await; // the fault itself
            system.workers[worker].cont().await;
        }
        Fault::KillToolServer(worker) => system.workers[worker].kill_tool_server().await,
        Fault::Kill(Server::Broker) => system.kill_broker(lasts).await,
        Fault::Kill(Server::Database) => system.kill_database(lasts).await,
        Fault::Kill(Server::LlmService) => system.kill_llm_service(lasts).await,
        Fault::Freeze(Server::LlmService) => system.freeze_llm_service(lasts).await,
        Fault::Freeze(Server::Broker | Server::Database) => system.freeze_broker(lasts).await,
        Fault::KillBackend => system.kill_backend().await,
        Fault::Purge(stream) => purge(stand, stream).await,
        Fault::LoseStreams => stand.book.lose(system, system.lose_streams(lasts)).await,
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
        recovered(stand, fault, &name, before).await;
        ended.elapsed()
    };
    (Happened { fault, from, until, recovery: None }, measured)
}

/// The worker that a fault affects.
fn hit(fault: Fault) -> Option<usize> {
    match fault {
        Fault::KillWorker(worker)
        | Fault::StopWorker(worker)
        | Fault::TerminateWorker(worker)
        | Fault::KillToolServer(worker)
        | Fault::Link(worker, _, _) => Some(worker),
        Fault::Kill(_)
        | Fault::Freeze(_)
        | Fault::KillBackend
        | Fault::Purge(_)
        | Fault::LoseStreams
        | Fault::WatchLink(_) => None,
    }
}

async fn purge(stand: &Stand, stream: Stream) {
    let purged = Box::pin(empty(&stand.system.nats_url, stream));
    match stream {
        // Until a worker's first statement only the stream keeps an alert.
        Stream::Alerts => stand.book.lose(&stand.system, purged).await,
        Stream::Timeline | Stream::Control => purged.await,
    }
}

async fn empty(nats_url: &str, stream: Stream) {
    // A stopped broker keeps its messages: the plan does not combine the two, but a restart may take long.
    let Ok(client) = async_nats::connect(nats_url).await else { return };
    if let Ok(found) = async_nats::jetstream::new(client).get_stream(stream.name()).await {
        found.purge().await.ok();
    }
}

/// Returns when the affected part is proven to work.
async fn recovered(stand: &Stand, fault: Fault, name: &str, before: Snapshot) {
    let observer = &stand.observer;
    match fault {
        Fault::KillWorker(_) | Fault::TerminateWorker(_) | Fault::StopWorker(_) => {
            let owned: Vec<(Uuid, Seen)> =
                before.iter().filter(|(_, seen)| is_of(seen, name)).map(|(id, seen)| (*id, seen.clone())).collect();
            if owned.is_empty() {
                if !matches!(fault, Fault::StopWorker(_)) {
                    stand.system.workers[hit(fault).unwrap_or_default()].succeeded(name).await;
                }
                return;
            }
            observer.until(|now| owned.iter().all(|(id, old)| now.get(id).is_none_or(|now| goes_on(old, now)))).await;
        }
        Fault::Kill(Server::Database) | Fault::KillBackend => {
            let then = observer.latest();
            observer.until(|now| now.iter().any(|(id, seen)| wrote(then.get(id), seen))).await;
        }
        Fault::Kill(Server::LlmService) | Fault::Freeze(Server::LlmService) => {
            let then = observer.latest();
            observer.until(|now| now.iter().any(|(id, seen)| answered(then.get(id), seen))).await;
        }
        Fault::Kill(Server::Broker) | Fault::Freeze(_) | Fault::Purge(_) | Fault::LoseStreams => {
            let then = observer.latest();
            observer.until(|now| now.iter().any(|(id, seen)| claimed(then.get(id), seen))).await;
        }
        Fault::Link(worker, Server::LlmService, _) => works(stand, worker, answered).await,
        Fault::Link(worker, ..) | Fault::KillToolServer(worker) => works(stand, worker, wrote).await,
        // The checker examines the watchers.
        Fault::WatchLink(_) => {}
    }
}

/// Returns when a session of this worker has written, or when the worker has no session and takes work.
async fn works(stand: &Stand, worker: usize, did: impl Fn(Option<&Seen>, &Seen) -> bool) {
    let (observer, worker) = (&stand.observer, &stand.system.workers[worker]);
    let then = observer.latest();
    loop {
        let name = worker.standing().name;
        let (mut idle, mut done) = (true, false);
        observer
            .look(|now| {
                idle = !now.values().any(|seen| is_of(seen, &name));
                done = now.iter().any(|(id, seen)| seen.worker_name == name && did(then.get(id), seen));
            })
            .await;
        if done || (idle && worker.takes_work().await) {
            return;
        }
    }
}

fn is_of(seen: &Seen, name: &str) -> bool {
    seen.running && seen.owned && seen.worker_name == name
}

fn goes_on(old: &Seen, now: &Seen) -> bool {
    !now.running || (now.owned && now.lease_epoch > old.lease_epoch) || now.event_seq > old.event_seq
}

fn wrote(old: Option<&Seen>, now: &Seen) -> bool {
    old.is_none_or(|old| now.event_seq > old.event_seq)
}

fn answered(old: Option<&Seen>, now: &Seen) -> bool {
    now.answers > old.map_or(0, |old| old.answers)
}

fn claimed(old: Option<&Seen>, now: &Seen) -> bool {
    now.running && old.is_none_or(|old| now.lease_epoch > old.lease_epoch)
}
