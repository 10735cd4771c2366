//! One configured server and its current connection.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};

use super::config::ServerConfig;
use super::connection::Connection;
use super::context::ConnectionContext;
use crate::mcp::Error;

/// One caller connects while the others wait, without holding a lock.
type ConnectionCell = Arc<OnceCell<Arc<Connection>>>;

#[derive(Debug)]
pub(super) struct Server {
    pub(super) config: ServerConfig,
    connection: Mutex<ConnectionCell>,
    /// One permit for each call that may be in flight.
    calls: Semaphore,
}

impl Server {
    pub(super) fn new(config: ServerConfig) -> Self {
        let calls = Semaphore::new(config.max_concurrent_calls as usize);
        Self { config, connection: Mutex::default(), calls }
    }

    /// Waits until one more call may be in flight. The permit ends with the call. Cancel safe.
    ///
    /// # Errors
    /// When too many calls are in flight for all of `timeout`.
    pub(super) async fn permit(&self, timeout: Duration) -> Result<SemaphorePermit<'_>, Error> {
        let permit = tokio::time::timeout(timeout, self.calls.acquire()).await;
        permit
            .ok()
            .and_then(Result::ok)
            .ok_or_else(|| Error::Busy { server: self.config.name.clone(), calls: self.config.max_concurrent_calls })
    }

    /// The current connection, or a new one when there is none or it has ended.
    ///
    /// Cancel safe: an unfinished connection ends with this future.
    pub(super) async fn connection(&self, context: &ConnectionContext) -> Result<Arc<Connection>, Error> {
        for _ in 0..2 {
            let cell = Arc::clone(&self.cell());
            let open = || async { Box::pin(Connection::open(&self.config, context)).await.map(Arc::new) };
            let connection = Arc::clone(cell.get_or_try_init(open).await?);
            if connection.is_usable().await {
                return Ok(connection);
            }
            self.discard(&connection);
        }
        Err(Error::Handshake {
            server: self.config.name.clone(),
            fault: "the connection ended right after the handshake".to_owned(),
        })
    }

    /// Makes the next caller open a new connection. Callers that still use this one keep it.
    pub(super) fn discard(&self, connection: &Arc<Connection>) {
        let mut cell = self.cell();
        if cell.get().is_some_and(|current| Arc::ptr_eq(current, connection)) {
            *cell = ConnectionCell::default();
        }
    }

    fn cell(&self) -> MutexGuard<'_, ConnectionCell> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
