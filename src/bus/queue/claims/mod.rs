//! The claim loop: takes alerts out of the queue, as many as there are free slots.
//!
//! Pull requests are answered on an inbox of our own. async-nats' stream requests more alerts than there are slots and,
//! when it is dropped, leaves the alerts that are on their way until `ack_wait`; our inbox is read until no request is
//! left at the server.

mod slots;
mod rotation;
mod pending_pulls;
mod pull_requests;
mod watchdog;
mod claimer;
mod job;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::claimer::{Claimer, Parts};
use crate::bus::connection::Nats;

pub use job::ClaimedJob;
pub(super) use job::belongs_to;

/// The capacity of the channel for jobs. Each job holds a slot, so this bounds the slots.
const MAX_JOBS: usize = 4096;
const MAX_EXPIRES: Duration = Duration::from_secs(10);

/// How a worker claims alerts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimSettings {
    /// Slots that only critical alerts may take.
    pub reserved_critical_slots: usize,
    /// An alert with a larger body becomes a dead letter without its body.
    pub max_alert_bytes: usize,
    /// How long one pull request may wait at the server, at most 10 s. `stop` takes as long.
    pub expires: Duration,
    /// If alerts wait for this long although slots are free, the claim loop starts again.
    pub stall_after: Duration,
}

impl Default for ClaimSettings {
    fn default() -> Self {
        Self {
            reserved_critical_slots: 0,
            max_alert_bytes: 512 * 1024,
            expires: Duration::from_secs(2),
            stall_after: Duration::from_secs(60),
        }
    }
}

/// Whether alerts are claimed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Claim,
    /// A service that investigations need is unavailable, or the worker drains.
    Pause,
}

/// A running claim loop.
#[derive(Debug)]
pub struct Claims {
    jobs: mpsc::Receiver<ClaimedJob>,
    stop: CancellationToken,
    task: JoinHandle<()>,
    nats: Nats,
}

impl Claims {
    /// Starts to claim alerts while `slots` has permits and `flow` is [`Flow::Claim`]. Each job holds one permit.
    pub fn start(nats: &Nats, settings: ClaimSettings, slots: Arc<Semaphore>, flow: watch::Receiver<Flow>) -> Self {
        let (sender, jobs) = mpsc::channel(MAX_JOBS);
        let stop = CancellationToken::new();
        let parts = Parts {
            nats: nats.clone(),
            settings: ClaimSettings { expires: settings.expires.min(MAX_EXPIRES), ..settings },
            slots,
            flow,
            jobs: sender,
            stop: stop.clone(),
        };
        Self { jobs, stop, task: tokio::spawn(Claimer::run(parts)), nats: nats.clone() }
    }

    /// The next job; `None` after the loop has ended. Cancel safe.
    pub async fn next(&mut self) -> Option<ClaimedJob> {
        self.jobs.recv().await
    }

    /// Stops claiming, releases the jobs that were not received, and returns when no pull request is left at the
    /// server: after at most `expires` and some seconds. If the future is dropped, alerts in flight come again after
    /// `ack_wait`.
    pub async fn stop(mut self) {
        self.stop.cancel();
        self.jobs.close();
        while let Some(claimed) = self.jobs.recv().await {
            claimed.job.delivery.release().await;
        }
        if let Err(error) = (&mut self.task).await {
            tracing::error!(%error, "claim loop panicked");
        }
        if let Err(error) = self.nats.flush().await {
            tracing::warn!(%error, "flush failed: released alerts may come again only after their ack_wait");
        }
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
