//! A configured MCP server: its connections, and the limit of concurrent calls.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use super::config::{ServerConfig, Transport};
use super::connection::{Connection, Endpoint};
use super::context::ConnectionContext;
use super::sessions::SessionConnections;
use super::slot::ConnectionSlot;
use super::transport::http::BearerToken;
use crate::Error;
use tarsy_config::ServerScope;
use tarsy_engine::ports::{Lease, SessionAfterRun};
use tarsy_mask::Mask;

#[derive(Debug)]
pub(super) struct Server {
    pub(super) config: ServerConfig,
    /// The token of a server over HTTP, which outlives its connections.
    token: Option<Arc<BearerToken>>,
    /// The connection that lists the tools. Sessions share it, too, unless each has a separate one.
    shared: Arc<ConnectionSlot>,
    sessions: SessionConnections,
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
        let calls = Semaphore::new(config.settings.max_concurrent_calls as usize);
        let sessions = SessionConnections::new(config.max_session_connections);
        Self {
            config,
            token,
            shared: Arc::default(),
            sessions,
            calls,
        }
    }

    /// Waits until one more call may be in flight. The permit ends with the call. Cancel safe.
    ///
    /// # Errors
    /// When too many calls are in flight for all of `timeout`.
    pub(super) async fn permit(&self, timeout: Duration) -> Result<SemaphorePermit<'_>, Error> {
        let permit = tokio::time::timeout(timeout, self.calls.acquire()).await;
        permit.ok().and_then(Result::ok).ok_or_else(|| Error::Busy {
            server: self.config.name.clone(),
            calls: self.config.settings.max_concurrent_calls,
        })
    }

    /// The place of the connection for the calls of this run, or for those of a person.
    pub(super) fn slot(&self, lease: Option<Lease>) -> Arc<ConnectionSlot> {
        match (self.config.settings.scope, lease) {
            (ServerScope::Session, Some(lease)) => self.sessions.slot(lease),
            (ServerScope::Session, None) | (ServerScope::Worker, _) => Arc::clone(&self.shared),
        }
    }

    /// The connection of this slot. Opens one if there is none. See [`ConnectionSlot::connection`].
    pub(super) async fn connection(
        &self,
        slot: &ConnectionSlot,
        context: &ConnectionContext,
    ) -> Result<Arc<Connection>, Error> {
        let endpoint = Endpoint {
            config: &self.config,
            token: self.token.as_ref(),
            session: slot.session(),
        };
        slot.connection(endpoint, context).await
    }

    /// Closes the connection that only the run with this lease has used.
    pub(super) fn run_ended(&self, lease: Lease, session: SessionAfterRun) {
        self.sessions.end(lease, session);
    }
}
