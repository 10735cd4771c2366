//! What a worker shows from time to time: its slots, its database connections, and the queue.

use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use tokio_util::sync::CancellationToken;

use crate::bus::{Backlog, Nats};
use crate::engine::run::registry::Running;
use crate::store::Store;

/// Finer than any scrape interval needs.
const EVERY: Duration = Duration::from_secs(2);
/// Between two looks at the queue: five requests to the broker each.
const QUEUE_EVERY: Duration = Duration::from_secs(15);

/// Shows how busy slots and database connections are, until `end` is cancelled.
pub async fn show_load<D>(store: Arc<Store>, (running, slots): (Arc<Running<D>>, u32), end: CancellationToken) {
    let mut tick = tokio::time::interval(EVERY);
    while end.run_until_cancelled(tick.tick()).await.is_some() {
        metrics::gauge!("tarsy_worker_slot_utilization_ratio")
            .set(count(running.all().len()) / f64::from(slots.max(1)));
        let pool = store.pool_use();
        metrics::gauge!("tarsy_db_pool_in_use").set(count(pool.in_use));
        metrics::gauge!("tarsy_db_pool_waiting").set(count(pool.waiting));
    }
}

/// Shows how long the queue is, until `end` is cancelled. Every worker shows the same: take the maximum.
pub async fn show_queue(nats: Nats, end: CancellationToken) {
    let mut tick = tokio::time::interval(QUEUE_EVERY);
    while end.run_until_cancelled(tick.tick()).await.is_some() {
        match end.run_until_cancelled(nats.backlog()).await {
            Some(Ok(backlog)) => show(&backlog),
            // The age of the last look says so.
            Some(Err(error)) => tracing::debug!(%error, "the queue cannot be seen"),
            None => return,
        }
    }
}

fn show(backlog: &[Backlog]) {
    for Backlog { priority, pending, in_progress, oldest } in backlog {
        let priority = priority.as_str();
        let oldest = oldest.unwrap_or_default().as_secs_f64();
        metrics::gauge!("tarsy_queue_pending", "priority" => priority).set(many(*pending));
        metrics::gauge!("tarsy_queue_in_progress", "priority" => priority).set(many(*in_progress));
        metrics::gauge!("tarsy_queue_oldest_alert_age_seconds", "priority" => priority).set(oldest);
    }
    let now = u64::try_from(Utc::now().timestamp_millis()).unwrap_or_default();
    metrics::gauge!("tarsy_queue_poll_timestamp_seconds").set(Duration::from_millis(now).as_secs_f64());
}

fn many(number: u64) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
