//! What is before an alert that nobody has begun with, and who works: asked again and again while somebody waits.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::bus::{Backlog, Nats, Priority, QueuePosition};
use crate::cli::messages::{self, Workers};
use crate::cli::watch::Waiting;
use crate::engine::ports::WorkerStatus;
use crate::investigation::ids::SessionId;

/// Before the first look: whoever asks for what has begun already hears nothing of a queue.
const FIRST: Duration = Duration::from_millis(300);
/// Between two looks at the queue.
const EVERY: Duration = Duration::from_secs(1);
/// Workers speak every five seconds.
const LISTEN: Duration = Duration::from_secs(6);

/// News of the queue. Dropping it ends it.
pub(crate) struct QueueWatch {
    news: mpsc::Receiver<Waiting>,
    _task: JoinSet<()>,
}

enum Wanted {
    /// An alert that was just queued.
    Alert(Priority, u64),
    /// A session that may be anywhere.
    Session(SessionId),
}

impl QueueWatch {
    /// Of the alert with this sequence.
    pub(crate) fn of_alert(nats: &Nats, priority: Priority, sequence: u64) -> Self {
        Self::start(nats, Wanted::Alert(priority, sequence))
    }

    /// Of everything, for one of whose place nothing is known.
    pub(super) fn of_session(nats: &Nats, session: SessionId) -> Self {
        Self::start(nats, Wanted::Session(session))
    }

    fn start(nats: &Nats, wanted: Wanted) -> Self {
        let (sender, news) = mpsc::channel(1);
        let mut task = JoinSet::new();
        let nats = nats.clone();
        task.spawn(async move { look(&nats, wanted, sender).await });
        Self { news, _task: task }
    }

    /// What comes next; never returns when there is nothing more to tell. Cancel safe.
    pub(super) async fn next(&mut self) -> Waiting {
        match self.news.recv().await {
            Some(waiting) => waiting,
            None => std::future::pending().await,
        }
    }
}

async fn look(nats: &Nats, wanted: Wanted, sender: mpsc::Sender<Waiting>) {
    let mut workers: Option<Workers> = None;
    let mut listening = Box::pin(nats.workers(LISTEN));
    let mut tick = tokio::time::interval_at(tokio::time::Instant::now() + FIRST, EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            heard = &mut listening => match heard {
                Ok(heard) => {
                    workers = Some(count(&heard));
                    listening = Box::pin(nats.workers(LISTEN));
                }
                // The connection is closed for good.
                Err(_) => return,
            },
            _ = tick.tick() => {}
        }
        let place = match &wanted {
            Wanted::Alert(priority, sequence) => place_of(nats, *priority, *sequence).await,
            Wanted::Session(session) => backlog(nats, *session).await,
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

/// Totals of those that were heard of.
pub(super) fn count(heard: &[WorkerStatus]) -> Workers {
    let of = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    Workers {
        count: of(heard.len()),
        slots: heard.iter().map(|worker| u64::from(worker.slots)).sum(),
        busy: heard.iter().map(|worker| of(worker.sessions.len())).sum(),
    }
}

async fn place_of(nats: &Nats, priority: Priority, sequence: u64) -> Option<String> {
    match nats.queue_position(priority, sequence).await.ok()? {
        QueuePosition::Waiting { ahead, exact } => Some(messages::queued(ahead, exact, priority.as_str())),
        QueuePosition::Claimed => Some("taken from the queue: a worker reads it".to_owned()),
        QueuePosition::Gone => Some("no longer queued: its first event is not published yet".to_owned()),
    }
}

async fn backlog(nats: &Nats, session: SessionId) -> Option<String> {
    let backlog = nats.backlog().await.ok()?;
    let each = backlog.iter().map(|Backlog { priority, pending, .. }| format!("{} {pending}", priority.as_str()));
    let each = each.collect::<Vec<_>>().join(", ");
    Some(format!("session {} has no event yet; queued: {each}", session.short()))
}
