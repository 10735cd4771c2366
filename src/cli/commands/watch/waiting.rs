//! Reports the place of a queued alert and the number of busy workers until the session begins.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::bus::{Backlog, Nats, Priority};
use crate::cli::messages::{self, Workers};
use crate::cli::watch::Waiting;
use crate::engine::ports::WorkerStatus;
use crate::investigation::ids::SessionId;

/// The time before the first report: a session that has begun needs none.
const FIRST_POLL_DELAY: Duration = Duration::from_millis(300);
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Long enough for a status of every worker, which are sent every five seconds.
const WORKER_STATUS_TIMEOUT: Duration = Duration::from_secs(6);

/// Reports on a queued alert. Dropping it ends the task behind it.
pub(crate) struct QueueWatch {
    reports: mpsc::Receiver<Waiting>,
    _task: JoinSet<()>,
}

enum Subject {
    /// An alert that was just queued with this sequence.
    Alert { priority: Priority, sequence: u64 },
    /// A session whose place in the queue is unknown.
    Session(SessionId),
}

impl QueueWatch {
    /// Reports on the alert with this sequence.
    pub(crate) fn of_alert(nats: &Nats, priority: Priority, sequence: u64) -> Self {
        Self::start(nats, Subject::Alert { priority, sequence })
    }

    /// Reports on all queues, for a session whose place is unknown.
    pub(super) fn of_session(nats: &Nats, session: SessionId) -> Self {
        Self::start(nats, Subject::Session(session))
    }

    fn start(nats: &Nats, subject: Subject) -> Self {
        let (sender, reports) = mpsc::channel(1);
        let mut task = JoinSet::new();
        let nats = nats.clone();
        task.spawn(async move { report(&nats, subject, sender).await });
        Self { reports, _task: task }
    }

    /// The next report; `None` after the last one. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<Waiting> {
        self.reports.recv().await
    }
}

async fn report(nats: &Nats, subject: Subject, sender: mpsc::Sender<Waiting>) {
    let mut workers: Option<Workers> = None;
    let mut statuses = Box::pin(nats.workers(WORKER_STATUS_TIMEOUT));
    let mut tick = tokio::time::interval_at(tokio::time::Instant::now() + FIRST_POLL_DELAY, POLL_INTERVAL);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            received = &mut statuses => match received {
                Ok(received) => {
                    workers = Some(count(&received));
                    statuses = Box::pin(nats.workers(WORKER_STATUS_TIMEOUT));
                }
                // The connection is closed.
                Err(_) => return,
            },
            _ = tick.tick() => {}
        }
        let place = match &subject {
            Subject::Alert { priority, sequence } => {
                let position = nats.queue_position(*priority, *sequence).await.ok();
                position.map(|position| messages::queue_position(&position, *priority))
            }
            Subject::Session(session) => backlog(nats, *session).await,
        };
        let Some(place) = place else { continue };
        let text = match workers {
            Some(workers) => format!("{place}; {}", messages::workers(workers)),
            None => place,
        };
        if sender.send(Waiting { text, complete: workers.is_some() }).await.is_err() {
            return;
        }
    }
}

/// Totals over all workers.
pub(super) fn count(statuses: &[WorkerStatus]) -> Workers {
    Workers {
        count: statuses.len(),
        slots: statuses.iter().map(|worker| u64::from(worker.slots)).sum(),
        busy: statuses.iter().map(|worker| worker.sessions.len()).sum(),
    }
}

async fn backlog(nats: &Nats, session: SessionId) -> Option<String> {
    let backlog = nats.backlog().await.ok()?;
    let each = backlog.iter().map(|Backlog { priority, pending, .. }| format!("{} {pending}", priority.as_str()));
    let each = each.collect::<Vec<_>>().join(", ");
    Some(format!("session {} has no event yet; queued: {each}", session.short()))
}
