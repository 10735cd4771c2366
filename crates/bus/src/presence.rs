//! Worker status on core NATS: published by workers (implements the port `Presence`), collected for people. It is never
//! stored, and decides only which worker reads the length of the queue.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::ready;
use futures_util::{FutureExt, Stream, StreamExt};
use tokio::time::Instant;

use super::connection::Nats;
use super::error::Error;
use super::names::{ALL_WORKERS, worker_subject};
use tarsy_engine::ports::{Presence, WorkerStatus};

/// The limit of listed workers.
const MAX_WORKERS: usize = 10_000;

impl Presence for Nats {
    fn announce(&self, worker: &WorkerStatus) {
        if !self.connection_state().connected {
            return;
        }
        let Ok(payload) = serde_json::to_vec(worker) else {
            return;
        };
        let publish = self
            .client
            .publish(worker_subject(worker.worker_id), payload.into());
        // Pending only if the connection has a backlog: then this status is dropped.
        match publish.now_or_never() {
            Some(Ok(())) => {}
            Some(Err(error)) => tracing::debug!(%error, "worker status dropped"),
            None => tracing::debug!("worker status dropped: connection busy"),
        }
    }
}

impl Nats {
    /// The status of every worker, as it is published, this process included.
    ///
    /// # Errors
    ///
    /// When the connection is closed.
    pub async fn worker_statuses(
        &self,
    ) -> Result<impl Stream<Item = WorkerStatus> + Send + Unpin + use<>, Error> {
        let statuses = self.client.subscribe(ALL_WORKERS).await?;
        Ok(statuses.filter_map(|message| ready(serde_json::from_slice(&message.payload).ok())))
    }

    /// Collects for `wait` the last status of each worker, by name. A worker publishes its status every 5 s.
    ///
    /// # Errors
    ///
    /// When the connection is closed.
    pub async fn workers(&self, wait: Duration) -> Result<Vec<WorkerStatus>, Error> {
        let until = Instant::now() + wait;
        let mut statuses = self.client.subscribe(ALL_WORKERS).await?;
        let mut workers = BTreeMap::new();
        while let Ok(Some(message)) = tokio::time::timeout_at(until, statuses.next()).await {
            match serde_json::from_slice::<WorkerStatus>(&message.payload) {
                Ok(status)
                    if workers.len() < MAX_WORKERS || workers.contains_key(&status.worker_id) =>
                {
                    workers.insert(status.worker_id, status);
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(subject = %message.subject, %error, "worker status ignored: unreadable")
                }
            }
        }
        let mut workers: Vec<WorkerStatus> = workers.into_values().collect();
        workers.sort_by(|a, b| (&a.name, a.worker_id).cmp(&(&b.name, b.worker_id)));
        Ok(workers)
    }
}
