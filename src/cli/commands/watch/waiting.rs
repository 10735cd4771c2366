//! Reports why a session makes no progress: its position in the queue, then that no worker runs it, or that its
//! worker waits for a service.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::cli::commands::database::stream_fault;
use crate::cli::commands::one_line_error;
use crate::cli::messages::{self, Workers};
use crate::cli::watch::Waiting;
use tarsy_bus::{Nats, Priority, QueuePosition};
use tarsy_core::ids::{SessionId, WorkerId};
use tarsy_engine::ports::WorkerStatus;
use tarsy_store::Store;

/// The time before the first report: a session that has begun needs none.
const FIRST_POLL_DELAY: Duration = Duration::from_millis(300);
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The time for a status of every worker. Each sends one every five seconds.
pub(in crate::cli::commands) const WORKER_STATUS_TIMEOUT: Duration = Duration::from_secs(6);
/// A worker whose last status is older is not running, or is cut off.
const STATUS_LIFETIME: Duration = Duration::from_secs(11);
/// A paused worker finishes the call in flight, so a session may still have events.
const PAUSED_AFTER: Duration = Duration::from_secs(3);
/// A session changes its owner within seconds, and the status of its new owner comes up to five seconds later.
const OWNERLESS_AFTER: Duration = Duration::from_secs(10);
/// Messages of each queue among which the alert is searched.
const MAX_SEARCHED: usize = 1000;
/// The time between two searches.
const SEARCH_INTERVAL: Duration = Duration::from_secs(5);

/// The place of a session in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueuePlace {
    /// The alert was queued with this sequence.
    Alert { priority: Priority, sequence: u64 },
    /// The place is unknown.
    Unknown,
}

/// Reports on one session. Dropping it ends the task that makes the reports.
pub(super) struct WaitWatch {
    reports: mpsc::Receiver<Option<Waiting>>,
    activity: watch::Sender<Option<Instant>>,
    _task: JoinSet<()>,
}

impl WaitWatch {
    /// Starts to report. Without a place in the queue, nothing is reported before the first event.
    pub(super) fn start(
        nats: &Nats,
        store: Option<Arc<Store>>,
        session: SessionId,
        place: Option<QueuePlace>,
    ) -> Self {
        let (sender, reports) = mpsc::channel(1);
        let (activity, last) = watch::channel(None);
        let reporter = Reporter {
            nats: nats.clone(),
            store,
            session,
            place,
            searched: None,
            began: Instant::now(),
            workers: BTreeMap::new(),
        };
        let mut task = JoinSet::new();
        task.spawn(reporter.run(last, sender));
        Self {
            reports,
            activity,
            _task: task,
        }
    }

    /// An event or a delta has arrived.
    pub(super) fn is_active(&self) {
        self.activity.send_replace(Some(Instant::now()));
    }

    /// The next report; `None` in it when the session does not wait any more. `None` after the last one. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<Option<Waiting>> {
        self.reports.recv().await
    }
}

struct Reporter {
    nats: Nats,
    store: Option<Arc<Store>>,
    session: SessionId,
    place: Option<QueuePlace>,
    searched: Option<(Instant, Found)>,
    began: Instant,
    /// The workers by their last status, and when it came.
    workers: BTreeMap<WorkerId, (Instant, WorkerStatus)>,
}

/// The result of the last search for the alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// A worker has seen the alert.
    Known,
    /// The message for an id that neither the queue nor the database knows.
    Nothing,
    /// The queue or the database could not be read, or the queue is too long for a search.
    Unclear,
}

impl Reporter {
    async fn run(
        mut self,
        activity: watch::Receiver<Option<Instant>>,
        sender: mpsc::Sender<Option<Waiting>>,
    ) {
        // An error means that the connection is closed.
        let Ok(mut statuses) = self.nats.worker_statuses().await else {
            return;
        };
        let mut tick = tokio::time::interval_at(Instant::now() + FIRST_POLL_DELAY, POLL_INTERVAL);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut waits = false;
        loop {
            tokio::select! {
                status = statuses.next() => {
                    let Some(status) = status else { return };
                    self.workers.insert(status.worker_id, (Instant::now(), status));
                    continue;
                }
                _ = tick.tick() => {}
            }
            self.workers
                .retain(|_, (at, _)| at.elapsed() < STATUS_LIFETIME);
            let last = *activity.borrow();
            let report = match (last, self.place) {
                (Some(at), _) => self.of_running(at.elapsed()),
                (None, Some(place)) => self.of_queued(place).await,
                (None, None) => None,
            };
            let changes = waits || report.is_some();
            waits = report.is_some();
            // An event that came meanwhile makes the report outdated.
            if changes && *activity.borrow() == last && sender.send(report).await.is_err() {
                return;
            }
        }
    }

    /// Whether every worker had time to send its status.
    fn has_all_statuses(&self) -> bool {
        self.began.elapsed() >= WORKER_STATUS_TIMEOUT
    }

    fn statuses(&self) -> impl Iterator<Item = &WorkerStatus> {
        self.workers.values().map(|(_, status)| status)
    }

    /// A session with events, the last of which came `silent` ago.
    fn of_running(&self, silent: Duration) -> Option<Waiting> {
        if !self.nats.connection_state().connected {
            return Some(waiting("nats", "waiting: NATS does not answer"));
        }
        let owner = self
            .statuses()
            .find(|worker| worker.sessions.contains(&self.session));
        if silent < PAUSED_AFTER {
            return None;
        }
        if let Some(owner) = owner {
            return outage([owner]);
        }
        if !self.has_all_statuses() {
            return None;
        }
        self.without_owner().or_else(|| {
            let workers = messages::workers(self.count());
            let text =
                format!("waiting: no worker has taken the investigation over yet; {workers}");
            (silent >= OWNERLESS_AFTER).then(|| waiting("ownerless", &text))
        })
    }

    /// The reason why no worker claims anything; `None` when one does.
    fn without_owner(&self) -> Option<Waiting> {
        if self.workers.is_empty() {
            return Some(waiting(
                "no worker",
                &format!("waiting: {}", messages::workers(Workers::default())),
            ));
        }
        if self.statuses().any(|worker| worker.state == "claiming") {
            return None;
        }
        outage(self.statuses())
            .or_else(|| Some(waiting("draining", "waiting: every worker shuts down")))
    }

    /// A session without an event.
    async fn of_queued(&mut self, place: QueuePlace) -> Option<Waiting> {
        if !self.nats.connection_state().connected {
            return Some(waiting("nats", "waiting: NATS does not answer"));
        }
        let (reason, place) = match place {
            QueuePlace::Alert { priority, sequence } => {
                let Ok(position) = self.nats.queue_position(priority, sequence).await else {
                    return self.without_streams().await;
                };
                let is_silent = position == QueuePosition::Claimed
                    && self.workers.is_empty()
                    && self.has_all_statuses();
                let text = if is_silent {
                    "taken from the queue by a worker that does not answer".to_owned()
                } else {
                    messages::queue_position(&position, priority)
                };
                ("queued".to_owned(), text)
            }
            QueuePlace::Unknown => match self.search().await {
                Found::Nothing => {
                    return Some(waiting("unknown", &messages::unknown(self.session)));
                }
                Found::Known | Found::Unclear => match self.backlog().await {
                    Some(backlog) => ("queued".to_owned(), backlog),
                    None => return self.without_streams().await,
                },
            },
        };
        if !self.has_all_statuses() {
            return Some(Waiting {
                text: place,
                reason,
                complete: false,
            });
        }
        let why = self.without_owner();
        let workers = match &why {
            Some(why) if !self.workers.is_empty() => why.text.clone(),
            Some(_) | None => messages::workers(self.count()),
        };
        Some(Waiting {
            text: format!("{place}; {workers}"),
            reason: why.map_or(reason, |why| why.reason),
            complete: true,
        })
    }

    /// The report while the server has no streams, or no `JetStream`.
    async fn without_streams(&self) -> Option<Waiting> {
        let fault = stream_fault(&self.nats).await?;
        Some(waiting(
            "streams",
            &format!("waiting: {}", one_line_error(&fault)),
        ))
    }

    /// Searches for the alert, at most every few seconds. In the queue it gets a place.
    async fn search(&mut self) -> Found {
        if let Some((at, found)) = self.searched
            && at.elapsed() < SEARCH_INTERVAL
        {
            return found;
        }
        let search = self
            .nats
            .search_queue(|alert| alert == self.session, MAX_SEARCHED)
            .await;
        let known = match &self.store {
            Some(store) => tokio::time::timeout(SEARCH_INTERVAL, store.report(self.session))
                .await
                .ok(),
            None => None,
        };
        let found = match (search, known) {
            (Ok(search), _) if !search.found.is_empty() => {
                let message = search.found.first();
                self.place = message.map(|message| QueuePlace::Alert {
                    priority: message.priority,
                    sequence: message.received.stream_sequence,
                });
                Found::Known
            }
            (_, Some(Ok(Some(_)))) => Found::Known,
            (Ok(search), Some(Ok(None))) if search.is_complete => Found::Nothing,
            (_, _) => Found::Unclear,
        };
        self.searched = Some((Instant::now(), found));
        found
    }

    /// Totals over all workers.
    fn count(&self) -> Workers {
        Workers {
            count: self.workers.len(),
            slots: self.statuses().map(|worker| u64::from(worker.slots)).sum(),
            busy: self.statuses().map(WorkerStatus::running).sum(),
            paused: self
                .statuses()
                .filter(|worker| worker.state == "paused")
                .count(),
        }
    }

    async fn backlog(&self) -> Option<String> {
        let backlog = self.nats.backlog().await.ok()?;
        let each: Vec<String> = backlog
            .iter()
            .map(|queue| format!("{} {}", queue.priority.as_str(), queue.pending))
            .collect();
        Some(format!(
            "session {} has no event yet; queued: {}",
            self.session.short(),
            each.join(", ")
        ))
    }
}

fn waiting(reason: &str, text: &str) -> Waiting {
    Waiting {
        text: text.to_owned(),
        reason: reason.to_owned(),
        complete: true,
    }
}

/// The services for which workers are paused, and for how long; `None` if none is paused.
fn outage<'a>(workers: impl IntoIterator<Item = &'a WorkerStatus>) -> Option<Waiting> {
    let paused: Vec<&WorkerStatus> = workers
        .into_iter()
        .filter(|worker| worker.state == "paused")
        .collect();
    let longest = paused.iter().map(|worker| worker.state_ms).max()?;
    let mut services: Vec<&str> = paused
        .iter()
        .flat_map(|w| &w.unavailable)
        .map(String::as_str)
        .collect();
    services.sort_unstable();
    services.dedup();
    let reason = messages::unavailable(&services);
    let since = messages::since(longest);
    Some(Waiting {
        text: format!("waiting: {reason}{since}"),
        reason,
        complete: true,
    })
}
