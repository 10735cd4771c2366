//! The gauges that a worker updates from time to time: its slots, its database connections, and the queue.

use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use tokio_util::sync::CancellationToken;

use crate::bus::{Backlog, Nats};
use crate::engine::worker::shared::Shared;
use crate::engine::world::World;
use crate::store::Store;

/// Shorter than any scrape interval.
const LOAD_INTERVAL: Duration = Duration::from_secs(2);
/// Between two reads of the queue's backlog, each of which is five requests to the broker.
const QUEUE_INTERVAL: Duration = Duration::from_secs(15);

/// How many slots and database connections are in use.
pub(super) struct LoadGauges<W: World> {
    pub(super) shared: Arc<Shared<W>>,
    pub(super) store: Arc<Store>,
}

impl<W: World> LoadGauges<W> {
    /// Updates the gauges until `end` is cancelled.
    pub(super) async fn run(self, end: CancellationToken) {
        let mut tick = tokio::time::interval(LOAD_INTERVAL);
        while end.run_until_cancelled(tick.tick()).await.is_some() {
            let slots = f64::from(self.shared.settings.limits.slots.max(1));
            metrics::gauge!("tarsy_worker_slot_utilization_ratio").set(count(self.shared.runs.all().len()) / slots);
            let pool = self.store.pool_use();
            metrics::gauge!("tarsy_db_pool_in_use").set(count(pool.in_use));
            metrics::gauge!("tarsy_db_pool_waiting").set(count(pool.waiting));
        }
    }
}

/// How long the queue is. Every worker exports the same values, so a query takes their maximum.
pub(super) struct QueueGauges {
    pub(super) nats: Nats,
}

impl QueueGauges {
    /// Updates the gauges until `end` is cancelled.
    pub(super) async fn run(self, end: CancellationToken) {
        let mut tick = tokio::time::interval(QUEUE_INTERVAL);
        while end.run_until_cancelled(tick.tick()).await.is_some() {
            match end.run_until_cancelled(self.nats.backlog()).await {
                Some(Ok(backlog)) => set(&backlog),
                // The timestamp of the last read shows the failure.
                Some(Err(error)) => tracing::debug!(%error, "queue gauges not updated"),
                None => return,
            }
        }
    }
}

fn set(backlog: &[Backlog]) {
    for Backlog { priority, pending, in_progress, oldest } in backlog {
        let priority = priority.as_str();
        let oldest = oldest.unwrap_or_default().as_secs_f64();
        metrics::gauge!("tarsy_queue_pending", "priority" => priority).set(count(*pending));
        metrics::gauge!("tarsy_queue_in_progress", "priority" => priority).set(count(*in_progress));
        metrics::gauge!("tarsy_queue_oldest_alert_age_seconds", "priority" => priority).set(oldest);
    }
    let now = u64::try_from(Utc::now().timestamp_millis()).unwrap_or_default();
    metrics::gauge!("tarsy_queue_poll_timestamp_seconds").set(Duration::from_millis(now).as_secs_f64());
}

fn count<N: TryInto<u32>>(number: N) -> f64 {
    f64::from(number.try_into().unwrap_or(u32::MAX))
}
