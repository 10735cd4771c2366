//! Caches the tools that a server offers, for as long as its connection lives.
//!
//! Many servers handle one request at a time, and an alert must not wait for a list of tools behind a long call. So the
//! list is requested once per connection, again after the server announces a change, and in the background when it is
//! older than some minutes. A separate task requests the list: an alert waits for it only for a short time, and a
//! server that starts slowly still has time to finish.

use parking_lot::Mutex;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::config::ServerConfig;
use super::connection::Connection;
use super::context::ConnectionContext;
use super::offer::offer;
use super::server::Server;
use crate::Error;
use tarsy_core::plan::ToolSpec;
use tarsy_mask::Mask;
use tarsy_reports::system::{ServerReport, ServerState, ToolCounts};

/// An older list is requested again, unless the server is busy.
const MAX_AGE: Duration = Duration::from_secs(300);
/// The pause after a failed request for the list.
const RETRY_DELAY: Duration = Duration::from_secs(5);
/// The longest time that an alert waits for a list.
const MAX_WAIT: Duration = Duration::from_secs(10);

type Tools = Arc<[ToolSpec]>;

/// A server and its cached tools.
#[derive(Debug)]
pub(super) struct CachedServer {
    pub(super) server: Server,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: Option<CachedList>,
    last_failure: Option<Failure>,
    /// The last request; cancelled when it has ended.
    request: Option<CancellationToken>,
}

#[derive(Clone, Debug)]
struct CachedList {
    tools: Tools,
    /// The tools that models may not call.
    left_out: usize,
    connection: Weak<Connection>,
    listed_at: Instant,
}

#[derive(Clone, Debug)]
struct Failure {
    at: Instant,
    reason: String,
}

/// The next step of a lookup.
enum Lookup {
    Found(Tools),
    Failed(String),
    Wait(CancellationToken),
}

impl CachedServer {
    pub(super) fn new(config: ServerConfig, mask: &Mask) -> Self {
        Self {
            server: Server::new(config, mask),
            state: Mutex::default(),
        }
    }

    /// The offered tools, sorted by name, or the reason why they are unavailable. Takes ten seconds at most.
    pub(super) async fn tools(
        self: &Arc<Self>,
        context: &Arc<ConnectionContext>,
    ) -> Result<Tools, String> {
        let ended = match self.lookup(context) {
            Lookup::Found(tools) => return Ok(tools),
            Lookup::Failed(reason) => return Err(reason),
            Lookup::Wait(ended) => ended,
        };
        // An aborted request ends as well, without a list.
        let waited = tokio::time::timeout(MAX_WAIT, ended.cancelled()).await;
        let state = self.state.lock();
        if let Some(last) = &state.last
            && last.live_connection().is_some()
        {
            return Ok(Arc::clone(&last.tools));
        }
        Err(match (&state.last_failure, waited) {
            (_, Err(_)) => format!(
                "mcp server {:?}: no list of tools within {MAX_WAIT:?}",
                self.server.config.name
            ),
            (Some(failure), Ok(_)) => failure.reason.clone(),
            (None, Ok(_)) => format!("mcp server {:?} is being stopped", self.server.config.name),
        })
    }

    /// The last known state of the server, without a request.
    pub(super) fn report(&self) -> ServerReport {
        let state = self.state.lock();
        let last = state.last.as_ref();
        let is_open = last.is_some_and(|last| last.live_connection().is_some());
        let failed_at = state.last_failure.as_ref().map(|failure| failure.at);
        let asked_at = failed_at.or_else(|| last.map(|last| last.listed_at));
        ServerReport {
            name: self.server.config.name.clone(),
            state: match (&state.last_failure, last) {
                (Some(_), _) => ServerState::Unreachable,
                (None, Some(_)) if is_open => ServerState::Reachable,
                (None, Some(_)) => ServerState::NotConnected,
                (None, None) => ServerState::NotAsked,
            },
            tools: last.map(CachedList::counts),
            error: state
                .last_failure
                .as_ref()
                .map(|failure| failure.reason.clone()),
            asked_ms: asked_at
                .map(|at| u64::try_from(at.elapsed().as_millis()).unwrap_or(u64::MAX)),
        }
    }

    fn lookup(self: &Arc<Self>, context: &Arc<ConnectionContext>) -> Lookup {
        let mut state = self.state.lock();
        let live = state
            .last
            .as_ref()
            .and_then(|last| Some((last.clone(), last.live_connection()?)));
        if let Some((last, connection)) = &live {
            let is_due = last.listed_at.elapsed() >= MAX_AGE && !connection.is_busy();
            if !connection.tools_changed() {
                if is_due && state.request_in_flight().is_none() && state.recent_failure().is_none()
                {
                    state.request = Some(self.request(context));
                }
                return Lookup::Found(Arc::clone(&last.tools));
            }
        }
        if let Some(ended) = state.request_in_flight() {
            return Lookup::Wait(ended.clone());
        }
        match (state.recent_failure(), live) {
            (Some(_), Some((last, _))) => Lookup::Found(last.tools),
            (Some(failure), None) => Lookup::Failed(failure.reason.clone()),
            (None, _) => Lookup::Wait(state.request.insert(self.request(context)).clone()),
        }
    }

    /// Requests the list in a separate task, which ends when the context shuts down. The token is cancelled when the
    /// task ends or panics.
    fn request(self: &Arc<Self>, context: &Arc<ConnectionContext>) -> CancellationToken {
        let ended = CancellationToken::new();
        let ends = ended.clone().drop_guard();
        let cached = Arc::clone(self);
        let context = Arc::clone(context);
        context.tasks.clone().spawn(async move {
            let _ends = ends;
            let listing = context
                .shutdown
                .run_until_cancelled(list(&cached.server, &context));
            let Some(listed) = listing.await else { return };
            let mut state = cached.state.lock();
            match listed {
                Ok((tools, left_out, connection)) => {
                    state.last = Some(CachedList {
                        tools,
                        left_out,
                        connection: Arc::downgrade(&connection),
                        listed_at: Instant::now(),
                    });
                    state.last_failure = None;
                }
                Err(error) => {
                    let error = context.masked(&error.to_string());
                    tracing::warn!(
                        server = cached.server.config.name,
                        error,
                        "mcp server tools unavailable"
                    );
                    state.last_failure = Some(Failure {
                        at: Instant::now(),
                        reason: error,
                    });
                }
            }
        });
        ended
    }
}

impl State {
    fn request_in_flight(&self) -> Option<&CancellationToken> {
        self.request.as_ref().filter(|ended| !ended.is_cancelled())
    }

    fn recent_failure(&self) -> Option<&Failure> {
        self.last_failure
            .as_ref()
            .filter(|failure| failure.at.elapsed() < RETRY_DELAY)
    }
}

impl CachedList {
    fn counts(&self) -> ToolCounts {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let read_only = self.tools.iter().filter(|tool| tool.read_only).count();
        ToolCounts {
            read_only: number(read_only),
            changing: number(self.tools.len() - read_only),
            left_out: number(self.left_out),
        }
    }

    /// The connection that the list came from, if it is still open.
    fn live_connection(&self) -> Option<Arc<Connection>> {
        self.connection
            .upgrade()
            .filter(|connection| connection.is_open())
    }
}

async fn list(
    server: &Server,
    context: &ConnectionContext,
) -> Result<(Tools, usize, Arc<Connection>), Error> {
    let shared = server.slot(None);
    let connection = server.connection(&shared, context).await?;
    // Cleared before the request, because a change after the request makes its answer outdated.
    connection.clear_tools_changed();
    let tools = connection
        .list_tools(&server.config.name)
        .await
        .inspect_err(|_| shared.discard(&connection))?;
    let offered = offer(&server.config, &tools, &context.mask);
    let left_out = tools.len().saturating_sub(offered.len());
    Ok((offered.into(), left_out, connection))
}
