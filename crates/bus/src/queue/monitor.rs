//! Watches whether the queue takes and delivers alerts: a connection alone does not show that.
//!
//! A server that is cut off from its cluster keeps its clients, and answers them that the stream has no leader, or not
//! at all. After a while the monitor changes to another server.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::connection::Nats;
use crate::error::{Error, within};
use crate::names::ALERTS;

const INTERVAL: Duration = Duration::from_secs(2);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// A cluster elects a leader within 4 s to 9 s. A worker that pauses its claims for each election only loses time.
const UNAVAILABLE_AFTER: Duration = Duration::from_secs(10);
/// Another server is tried when this one should have seen a new leader.
const CHANGE_AFTER: Duration = Duration::from_secs(10);

/// Checks the queue every two seconds.
#[derive(Debug)]
pub struct QueueMonitor {
    nats: Nats,
    available: watch::Sender<bool>,
}

impl QueueMonitor {
    pub fn new(nats: &Nats) -> Self {
        Self {
            nats: nats.clone(),
            available: watch::Sender::new(true),
        }
    }

    /// Whether the queue works, or has not been without a leader for longer than an election takes.
    pub fn available(&self) -> watch::Receiver<bool> {
        self.available.subscribe()
    }

    /// Watches until `end` is cancelled.
    pub async fn run(self, end: CancellationToken) {
        end.run_until_cancelled(self.watch()).await;
    }

    async fn watch(&self) {
        let mut failing_since = None;
        loop {
            match self.check().await {
                // The state of the connection shows this by itself.
                _ if !self.nats.connection_state().connected => failing_since = None,
                Ok(()) => {
                    failing_since = None;
                    self.nats.changes.reset();
                    if !self.available.send_replace(true) {
                        tracing::info!("queue is available");
                    }
                }
                Err(error) => {
                    let since = *failing_since.get_or_insert_with(Instant::now);
                    self.failed(since, &error).await;
                }
            }
            tokio::time::sleep(INTERVAL).await; // interval between checks
        }
    }

    async fn failed(&self, since: Instant, error: &Error) {
        if since.elapsed() >= UNAVAILABLE_AFTER && self.available.send_replace(false) {
            tracing::warn!(server = self.nats.client.server_info().server_name, %error, "queue is unavailable");
        }
        if since.elapsed() >= CHANGE_AFTER {
            self.nats.change_server().await;
        }
    }

    /// A stream that does not exist is reported by the claims.
    async fn check(&self) -> Result<(), Error> {
        let silence = format!("no answer about {ALERTS}");
        let found = within(ANSWER_TIMEOUT, silence, self.nats.find_stream(ALERTS)).await?;
        match found.and_then(|found| found.cluster) {
            Some(cluster) if cluster.leader.as_deref().unwrap_or_default().is_empty() => {
                Err(Error::Unavailable(format!("{ALERTS} has no leader")))
            }
            Some(_) | None => Ok(()),
        }
    }
}
