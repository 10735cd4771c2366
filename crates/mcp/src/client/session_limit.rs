//! The limit on connections of single sessions to a server, and their count as a metric.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The limit of concurrent connections of single sessions.
#[derive(Clone, Debug)]
pub(super) struct SessionLimit(Arc<Semaphore>);

/// One connection of a session, until its process has exited. It is counted.
#[derive(Debug)]
pub(super) struct CountedConnection(Option<OwnedSemaphorePermit>);

impl SessionLimit {
    pub(super) fn new(max: u32) -> Self {
        Self(Arc::new(Semaphore::new(max as usize)))
    }

    /// Waits until one more connection may exist. The caller has a deadline. Cancel safe.
    pub(super) async fn acquire(&self) -> CountedConnection {
        // The semaphore is never closed, so there is a permit.
        let permit = Arc::clone(&self.0).acquire_owned().await.ok();
        metrics::gauge!("tarsy_mcp_session_connections").increment(1.0);
        CountedConnection(permit)
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        metrics::gauge!("tarsy_mcp_session_connections").decrement(1.0);
        self.0 = None;
    }
}
