//! One configured server and its current connection.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;

use super::ConnectionContext;
use super::connection::Connection;
use super::tool_cache::ToolCache;
use crate::mcp::Error;

/// The configuration of an MCP server over stdio.
#[derive(Clone)]
pub struct ServerConfig {
    /// The first part of its tools' names.
    pub name: String,
    pub command: String,
    pub args: Vec<String>,
    /// Added to a few variables without secrets that the worker passes on.
    pub env: BTreeMap<String, String>,
    /// The upper limit of every call's timeout.
    pub tool_timeout: Duration,
    /// Tools that are read-only although the server does not declare it.
    pub read_only: Vec<String>,
    /// Tools that are offered although they may change something.
    pub allowed: Vec<String>,
    /// If set, no other tools are offered.
    pub tools: Option<Vec<String>>,
    /// Tools that are never offered.
    pub deny: Vec<String>,
    /// Whether a tool is read-only when its server declares it.
    pub trust_hints: bool,
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments and environment may contain secrets.
        f.debug_struct("ServerConfig").field("name", &self.name).field("command", &self.command).finish_non_exhaustive()
    }
}

/// One caller connects while the others wait, without holding a lock.
type ConnectionCell = Arc<OnceCell<Arc<Connection>>>;

#[derive(Debug)]
pub(super) struct Server {
    pub(super) config: ServerConfig,
    pub(super) tools: ToolCache,
    connection: Mutex<ConnectionCell>,
}

impl Server {
    pub(super) fn new(config: ServerConfig) -> Self {
        Self { config, tools: ToolCache::default(), connection: Mutex::default() }
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
