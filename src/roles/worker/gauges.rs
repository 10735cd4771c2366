//! The gauges that a worker updates from time to time: its slots and its database connections.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use tarsy_engine::delivery::dispatcher::Dispatcher;
use tarsy_engine::world::World;
use tarsy_store::Store;

/// The time between two updates, which is shorter than any scrape interval.
const LOAD_INTERVAL: Duration = Duration::from_secs(2);

/// The gauges of slots and database connections in use.
pub(super) struct LoadGauges<W: World> {
    pub(super) dispatcher: Arc<Dispatcher<W>>,
    pub(super) store: Arc<Store>,
}

impl<W: World> LoadGauges<W> {
    /// Updates the gauges until `end` is cancelled.
    pub(super) async fn run(self, end: CancellationToken) {
        let mut tick = tokio::time::interval(LOAD_INTERVAL);
        while end.run_until_cancelled(tick.tick()).await.is_some() {
            let slots = f64::from(self.dispatcher.settings.limits.slots.max(1));
            metrics::gauge!("tarsy_worker_slot_utilization_ratio")
                .set(count(self.dispatcher.runs.all().len()) / slots);
            let pool = self.store.pool_use();
            metrics::gauge!("tarsy_db_pool_size").set(count(pool.size));
            metrics::gauge!("tarsy_db_pool_in_use").set(count(pool.in_use));
            metrics::gauge!("tarsy_db_pool_waiting").set(count(pool.waiting));
        }
    }
}

pub(super) fn count<N: TryInto<u32>>(number: N) -> f64 {
    f64::from(number.try_into().unwrap_or(u32::MAX))
}
