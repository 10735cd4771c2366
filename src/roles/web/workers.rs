//! The last status of each worker, as the workers publish them.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::sync::watch;
use tokio::time::Instant;

use tarsy_bus::Nats;
use tarsy_core::ids::WorkerId;
use tarsy_engine::ports::WorkerStatus;

/// A worker publishes its status every five seconds.
const MAX_AGE: Duration = Duration::from_secs(15);
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// The number of workers that are listed at most.
const MAX_WORKERS: usize = 10_000;

/// The workers that sent a status lately.
#[derive(Clone, Debug, Default)]
pub(super) struct Workers(Arc<Mutex<BTreeMap<WorkerId, (Instant, WorkerStatus)>>>);

impl Workers {
    /// The statuses, sorted by name.
    pub(super) fn current(&self) -> Vec<WorkerStatus> {
        let mut statuses = self.0.lock();
        statuses.retain(|_, (at, _)| at.elapsed() < MAX_AGE);
        let mut workers: Vec<WorkerStatus> = statuses
            .values()
            .map(|(_, status)| status.clone())
            .collect();
        workers.sort_by(|a, b| (&a.name, a.worker_id).cmp(&(&b.name, b.worker_id)));
        workers
    }

    /// Collects statuses as long as the process lasts.
    pub(super) async fn collect(&self, mut nats: watch::Receiver<Option<Nats>>) -> Infallible {
        loop {
            let connected = nats.wait_for(Option::is_some).await.ok();
            if let Some(nats) = connected.and_then(|nats| nats.clone())
                && let Ok(mut statuses) = nats.worker_statuses().await
            {
                while let Some(status) = statuses.next().await {
                    self.add(status);
                }
            }
            tokio::time::sleep(RETRY_DELAY).await; // pacing of retries
        }
    }

    fn add(&self, status: WorkerStatus) {
        let mut statuses = self.0.lock();
        statuses.retain(|_, (at, _)| at.elapsed() < MAX_AGE);
        if statuses.len() < MAX_WORKERS || statuses.contains_key(&status.worker_id) {
            statuses.insert(status.worker_id, (Instant::now(), status));
        }
    }
}
