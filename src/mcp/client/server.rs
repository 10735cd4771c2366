//! One configured server and its present connection.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;

use super::Surroundings;
use super::connection::Connection;
use super::offers::Offers;
use crate::mcp::Error;

/// A stdio MCP server, as configured.
#[derive(Clone)]
pub struct ServerConfig {
    /// The first part of its tools' names.
    pub name: String,
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment, besides a few harmless variables of the worker's.
    pub env: BTreeMap<String, String>,
    /// The longest time that one call may take, whatever the caller allows.
    pub tool_timeout: Duration,
    /// Tools that change nothing although the server does not say so.
    pub read_only: Vec<String>,
    /// Tools that are offered although they may change something.
    pub allowed: Vec<String>,
    /// Where there is such a list: the only tools that are offered, if the other rules let them.
    pub tools: Option<Vec<String>>,
    /// Tools that are not offered, whatever else is said of them.
    pub deny: Vec<String>,
    /// Whether a tool counts as read-only when its server says so.
    pub trust_hints: bool,
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments and environment may hold secrets.
        f.debug_struct("ServerConfig").field("name", &self.name).field("command", &self.command).finish_non_exhaustive()
    }
}

/// A cell lets one caller connect while the others wait for it, and no lock is held meanwhile.
type Slot = Arc<OnceCell<Arc<Connection>>>;

#[derive(Debug)]
pub(super) struct Server {
    pub(super) config: ServerConfig,
    pub(super) offers: Offers,
    slot: Mutex<Slot>,
}

impl Server {
    pub(super) fn new(config: ServerConfig) -> Self {
        Self { config, offers: Offers::default(), slot: Mutex::default() }
    }

    /// The present connection, or a new one when there is none or it has ended.
    ///
    /// Cancel safe: a connection that is only half made ends with this future.
    pub(super) async fn connection(&self, surroundings: &Surroundings) -> Result<Arc<Connection>, Error> {
        for _ in 0..2 {
            let slot = Arc::clone(&self.slot());
            let open = || async { Box::pin(Connection::open(&self.config, surroundings)).await.map(Arc::new) };
            let connection = Arc::clone(slot.get_or_try_init(open).await?);
            if connection.usable().await {
                return Ok(connection);
            }
            self.forget(&connection);
        }
        Err(Error::Handshake {
            server: self.config.name.clone(),
            fault: "it ended right after the handshake".to_owned(),
        })
    }

    /// The next caller makes a new connection; who still uses this one keeps it.
    pub(super) fn forget(&self, connection: &Arc<Connection>) {
        let mut slot = self.slot();
        if slot.get().is_some_and(|present| Arc::ptr_eq(present, connection)) {
            *slot = Slot::default();
        }
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
