//! A shared connection: one caller opens it for all, and opens it again after a loss.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep_until};

use super::connection::{Connection, Endpoint};
use super::context::ConnectionContext;
use super::session_limit::SessionLimit;
use super::transport::http::HeaderSession;
use crate::Error;

/// The delay in milliseconds before a lost connection is opened again. It is random, so that the workers of a server
/// that restarts do not all return at once.
const RECONNECT_DELAY_MS: std::ops::RangeInclusive<u64> = 250..=750;

/// A connection that all sessions of a worker share, or that belongs to one session. It is opened when it is needed.
#[derive(Debug, Default)]
pub(super) struct ConnectionSlot {
    current: Mutex<Arc<Attempt>>,
    /// The limit that a connection of one session counts towards.
    limit: Option<SessionLimit>,
    /// The one session that uses the connection.
    session: Option<Arc<HeaderSession>>,
}

/// A connection, opened by one caller while the others wait without holding a lock.
#[derive(Debug, Default)]
struct Attempt {
    cell: OnceCell<Arc<Connection>>,
    /// The earliest time at which it is opened, if the connection before it was lost.
    not_before: Option<Instant>,
}

impl ConnectionSlot {
    /// The place of a connection of one session.
    pub(super) fn limited(limit: SessionLimit, session: HeaderSession) -> Self {
        Self {
            limit: Some(limit),
            session: Some(Arc::new(session)),
            ..Self::default()
        }
    }

    /// The current connection, or a new one when there is none or it has ended. After a loss all callers wait for the
    /// same new connection, which is opened after a short random delay.
    ///
    /// Cancel safe: an unfinished connection ends with this future.
    pub(super) async fn connection(
        &self,
        endpoint: Endpoint<'_>,
        context: &ConnectionContext,
    ) -> Result<Arc<Connection>, Error> {
        for _ in 0..2 {
            let attempt = Arc::clone(&self.current.lock());
            let opened = attempt
                .cell
                .get_or_try_init(|| self.open(&attempt, endpoint, context))
                .await?;
            let connection = Arc::clone(opened);
            if connection.is_usable().await {
                return Ok(connection);
            }
            self.discard(&connection);
        }
        Err(Error::Handshake {
            server: endpoint.config.name.clone(),
            fault: "the connection ended right after the handshake".to_owned(),
        })
    }

    async fn open(
        &self,
        attempt: &Attempt,
        endpoint: Endpoint<'_>,
        context: &ConnectionContext,
    ) -> Result<Arc<Connection>, Error> {
        if let Some(not_before) = attempt.not_before {
            // The connection itself reports that the worker is stopping.
            context
                .shutdown
                .run_until_cancelled(sleep_until(not_before))
                .await;
        }
        let counted = match &self.limit {
            Some(limit) => Some(limit.acquire().await),
            None => None,
        };
        Box::pin(Connection::open(endpoint, counted, context))
            .await
            .map(Arc::new)
    }

    /// Makes the next caller open a new connection. Callers that still use this one keep it.
    pub(super) fn discard(&self, connection: &Arc<Connection>) {
        let mut current = self.current.lock();
        let opened = current.cell.get();
        // Another caller may have discarded it already, and a third one may have opened the next one.
        if opened.is_some_and(|opened| Arc::ptr_eq(opened, connection)) {
            let delay = Duration::from_millis(fastrand::u64(RECONNECT_DELAY_MS));
            *current = Arc::new(Attempt {
                cell: OnceCell::new(),
                not_before: Some(Instant::now() + delay),
            });
        }
    }

    /// The session that uses the connection alone; `None` for a shared one.
    pub(super) fn session(&self) -> Option<&Arc<HeaderSession>> {
        self.session.as_ref()
    }

    /// The session has ended for good, so that its server may forget it when the connection closes.
    pub(super) fn session_ended(&self) {
        if let Some(session) = &self.session {
            session.end();
        }
    }

    /// Whether a connection was opened here and not discarded.
    pub(super) fn is_opened(&self) -> bool {
        self.current.lock().cell.initialized()
    }
}
