//! The claim loop: takes alerts out of the queue, as many as there are free slots.
//!
//! Pull requests go out on an inbox of our own. async-nats' stream asks for more than is free and, when it is dropped,
//! strands what is on its way until `ack_wait`; an own inbox is read until no request is left at the server.

mod claimer;
mod job;
mod requests;
mod rotation;
mod watchdog;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::claimer::{Claimer, Parts};
use crate::bus::connection::Nats;

pub use job::ClaimedJob;
pub(super) use job::is_of;

/// Jobs that wait to be taken are bounded by the slots; this bounds the slots.
const MAX_JOBS: usize = 4096;
const MAX_EXPIRES: Duration = Duration::from_secs(10);

/// How to claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimSettings {
    /// Slots that only critical alerts may take.
    pub reserved_critical_slots: usize,
    /// Larger bodies are not kept: they become dead letters.
    pub max_alert_bytes: usize,
    /// How long one request may wait at the server, at most 10 s: also how long `stop` may take.
    pub expires: Duration,
    /// Alerts that wait for so long beside free slots make the claim loop begin anew.
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
    /// They are.
    Claim,
    /// Something they need is unavailable.
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
    /// Starts to claim while `slots` has permits and `flow` says so. Each job holds one permit.
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

    /// Stops claiming at once, gives back what nobody has taken, and returns when no request is left at the server:
    /// after at most `expires` and some seconds. Dropping the future leaves what is in flight to `ack_wait`.
    pub async fn stop(mut self) {
        self.stop.cancel();
        self.jobs.close();
        while let Some(claimed) = self.jobs.recv().await {
            claimed.job.delivery.give_back().await;
        }
        if let Err(error) = (&mut self.task).await {
            tracing::error!(%error, "the claim loop panicked");
        }
        if let Err(error) = self.nats.flush().await {
            tracing::warn!(%error, "alerts that were given back may come again only after their ack_wait");
        }
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
