//! The claim loop: takes alerts out of the queue, as many as there are free slots.
//!
//! Pull requests are answered on a separate inbox. async-nats' stream requests more alerts than there are slots and,
//! when it is dropped, leaves the alerts that are on their way until `ack_wait`; this inbox is read until no request is
//! left at the server.

mod settings;
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

use self::claimer::Claimer;
use self::slots::Slots;
use crate::connection::Nats;

pub use job::ClaimedJob;
pub(crate) use job::stored_at;
pub(super) use job::{belongs_to, chosen_id, derived_id_of};
pub use settings::{ClaimSettings, Flow};

/// The capacity of the channel for jobs. Each job holds a slot, so this bounds the slots.
const MAX_JOBS: usize = 20_000;
const MAX_EXPIRES: Duration = Duration::from_secs(10);

/// A running claim loop.
#[derive(Debug)]
pub struct Claims {
    /// Closing it stops the loop.
    jobs: mpsc::Receiver<ClaimedJob>,
    task: JoinHandle<()>,
    nats: Nats,
}

impl Claims {
    /// Starts to claim alerts while `slots` has permits and `flow` is [`Flow::Claim`]. Each job holds one permit.
    pub fn start(
        nats: &Nats,
        settings: ClaimSettings,
        slots: Arc<Semaphore>,
        flow: watch::Receiver<Flow>,
    ) -> Self {
        let (sender, jobs) = mpsc::channel(MAX_JOBS);
        let slots = Slots::new(slots, settings.reserved_critical_slots);
        let settings = ClaimSettings {
            expires: settings.expires.min(MAX_EXPIRES),
            ..settings
        };
        let task = tokio::spawn(Claimer::run(nats.clone(), settings, slots, flow, sender));
        Self {
            jobs,
            task,
            nats: nats.clone(),
        }
    }

    /// The next job; `None` after the loop has ended. Cancel safe.
    pub async fn next(&mut self) -> Option<ClaimedJob> {
        self.jobs.recv().await
    }

    /// Stops claiming, releases the jobs that were not received, and returns when no pull request is left at the
    /// server: after at most `expires` and some seconds. If the future is dropped, alerts in flight come again after
    /// `ack_wait`.
    pub async fn stop(mut self) {
        self.jobs.close();
        while let Some(claimed) = self.jobs.recv().await {
            claimed.job.delivery.release().await;
        }
        if let Err(error) = self.task.await {
            tracing::error!(%error, "claim loop panicked");
        }
        if let Err(error) = self.nats.flush().await {
            tracing::warn!(%error, "flush failed: released alerts may come again only after their ack_wait");
        }
    }
}
