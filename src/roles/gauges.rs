//! What a worker shows of itself from time to time: slots and database connections.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::engine::running::Running;
use crate::store::Store;

/// Finer than any scrape interval needs.
const EVERY: Duration = Duration::from_secs(2);

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

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
