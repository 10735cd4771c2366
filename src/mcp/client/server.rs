//! One configured server and its current connection.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until};

use super::config::{ServerConfig, Transport};
use super::connection::Connection;
use super::context::ConnectionContext;
use super::transport::http::BearerToken;
use crate::investigation::mask::Mask;
use crate::mcp::Error;

/// The delay in milliseconds before a lost connection is opened again. It is random, so that the workers of a server
/// that restarts do not all return at once.
const RECONNECT_DELAY_MS: std::ops::RangeInclusive<u64> = 250..=750;

/// A connection, opened by one caller while the others wait without holding a lock.
#[derive(Debug, Default)]
struct Slot {
    cell: OnceCell<Arc<Connection>>,
    /// The connection before this one was lost, so this one is not opened earlier.
    not_before: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct Server {
    pub(super) config: ServerConfig,
    /// The token of a server over HTTP, which outlives its connections.
    token: Option<Arc<BearerToken>>,
    slot: Mutex<Arc<Slot>>,
    /// One permit for each call that may be in flight.
    calls: Semaphore,
}

impl Server {
    pub(super) fn new(config: ServerConfig, mask: &Mask) -> Self {
        let source = match &config.transport {
            Transport::Http(address) => address.token.clone(),
            Transport::Stdio(_) => None,
        };
        let token = source.map(|source| Arc::new(BearerToken::new(source, mask.clone())));
        let calls = Semaphore::new(config.max_concurrent_calls as usize);
        Self { config, token, slot: Mutex::default(), calls }
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

    /// The current connection, or a new one when there is none or it has ended. After a loss all callers wait for the
    /// same new connection, which is opened after a short random delay.
    ///
    /// Cancel safe: an unfinished connection ends with this future.
    pub(super) async fn connection(&self, context: &ConnectionContext) -> Result<Arc<Connection>, Error> {
        for _ in 0..2 {
            let slot = Arc::clone(&self.slot());
            let connection = Arc::clone(slot.cell.get_or_try_init(|| self.open(&slot, context)).await?);
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

    async fn open(&self, slot: &Slot, context: &ConnectionContext) -> Result<Arc<Connection>, Error> {
        if let Some(not_before) = slot.not_before {
            // The connection itself reports that the worker is stopping.
            context.shutdown.run_until_cancelled(sleep_until(not_before)).await;
        }
        Box::pin(Connection::open(&self.config, self.token.clone(), context)).await.map(Arc::new)
    }

    /// Makes the next caller open a new connection. Callers that still use this one keep it.
    pub(super) fn discard(&self, connection: &Arc<Connection>) {
        let mut slot = self.slot();
        if slot.cell.get().is_some_and(|current| Arc::ptr_eq(current, connection)) {
            let delay = Duration::from_millis(fastrand::u64(RECONNECT_DELAY_MS));
            *slot = Arc::new(Slot { cell: OnceCell::new(), not_before: Some(Instant::now() + delay) });
        }
    }

    fn slot(&self) -> MutexGuard<'_, Arc<Slot>> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
