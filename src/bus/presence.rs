//! Workers say that they are there: on core NATS, never kept, never used to decide who owns what.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use tokio::time::Instant;

use super::connection::Nats;
use super::error::Error;
use super::names::{ALL_WORKERS, worker_subject};
use crate::engine::ports::{Presence, WorkerStatus};

/// More are not listed.
const MAX_WORKERS: usize = 10_000;

/// Announces a worker: implements the port `Presence`.
#[derive(Clone, Debug)]
pub struct WorkerPresence {
    nats: Nats,
}

impl WorkerPresence {
    /// On this connection.
    pub fn new(nats: &Nats) -> Self {
        Self { nats: nats.clone() }
    }
}

impl Presence for WorkerPresence {
    fn announce(&self, worker: &WorkerStatus) {
        if !self.nats.connection_state().connected {
            return;
        }
        let Ok(payload) = serde_json::to_vec(worker) else { return };
        let publish = self.nats.client().publish(worker_subject(worker.worker_id), payload.into());
        // Ready at once, unless the connection has a queue before it: then this announcement is not worth the wait.
        match publish.now_or_never() {
            Some(Ok(())) => {}
            Some(Err(error)) => tracing::debug!(%error, "the worker was not announced"),
            None => tracing::debug!("the worker was not announced: the connection is busy"),
        }
    }
}

impl Nats {
    /// Listens for `wait`: what each worker last said of itself, by name. Workers speak every 5 s.
    ///
    /// # Errors
    ///
    /// When the connection is closed.
    pub async fn workers(&self, wait: Duration) -> Result<Vec<WorkerStatus>, Error> {
        let until = Instant::now() + wait;
        let heard = self.client().subscribe(ALL_WORKERS).await;
        let mut heard = heard.map_err(|error| Error::Unavailable(error.to_string()))?;
        let mut workers = BTreeMap::new();
        while let Ok(Some(message)) = tokio::time::timeout_at(until, heard.next()).await {
            match serde_json::from_slice::<WorkerStatus>(&message.payload) {
                Ok(news) if workers.len() < MAX_WORKERS || workers.contains_key(&news.worker_id) => {
                    workers.insert(news.worker_id, news);
                }
                Ok(_) => {}
                Err(error) => tracing::debug!(subject = %message.subject, %error, "no news of a worker"),
            }
        }
        let mut workers: Vec<WorkerStatus> = workers.into_values().collect();
        workers.sort_by(|a, b| (&a.name, a.worker_id).cmp(&(&b.name, b.worker_id)));
        Ok(workers)
    }
}
