//! The connection to one MCP server: starts the child process, does the handshake and sends requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig,
    ClientRequest, ErrorData, Implementation, PingRequest, ProgressNotificationParam, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, NotificationContext, RunningService, ServiceError, serve_client_with_ct,
};
use rmcp::{ClientHandler, Peer, RoleClient};
use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::calls::pending::{Expired, NoAnswer, PendingCalls, RequestTimeouts};
use super::config::{ServerConfig, Transport};
use super::context::ConnectionContext;
use super::list::declared::Declared;
use super::list::pages::{self, ListFault};
use super::result;
use super::session_limit::CountedConnection;
use super::transport::UNREADABLE;
use super::transport::child;
use super::transport::http::{self, BearerToken, HeaderSession, TransportFault, fault_of};
use crate::Error;

/// The time limit for the start of a server and the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);
/// The time limit for the list of tools.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// A longer reason for a failed handshake is cut.
const MAX_FAULT_CHARS: usize = 300;
/// The time limit for the ping after a call that timed out.
const PING_TIMEOUT: Duration = Duration::from_secs(3);

/// The server that a connection leads to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Endpoint<'a> {
    pub(super) config: &'a ServerConfig,
    pub(super) token: Option<&'a Arc<BearerToken>>,
    /// The session that uses the connection alone.
    pub(super) session: Option<&'a Arc<HeaderSession>>,
}

/// A running MCP server. Dropping the connection ends its process: input closed, then SIGTERM, then SIGKILL.
#[derive(Debug)]
pub(super) struct Connection {
    peer: Peer<RoleClient>,
    /// Whether a request has timed out, so that a ping has to succeed before the next call.
    needs_ping: AtomicBool,
    tools_changed: Arc<AtomicBool>,
    pending: PendingCalls,
    /// Whether a server over HTTP has gone, or has forgotten the session.
    lost: Arc<AtomicBool>,
    /// Cancelled when a child process has exited.
    ended: CancellationToken,
    /// Each call in flight holds a clone.
    in_flight: Arc<()>,
    _ends_with_this: DropGuard,
}

/// The reason why a request that was sent has no result.
pub(super) enum CallFailure {
    /// The server answered with a protocol error.
    Refused(String),
    /// The server sent an answer that cannot be read.
    Unreadable(String),
    /// The server cannot have acted on the call.
    Unsent(String),
    /// The connection broke, or a status took the place of the answer.
    Broken(String),
    /// No answer arrived in time; a cancellation was sent to the server.
    Timeout(Expired),
}

impl Connection {
    /// Starts the server's process and completes the handshake. The connection's tasks end when the context shuts down.
    /// `counted` lives until the process has exited.
    pub(super) async fn open(
        endpoint: Endpoint<'_>,
        counted: Option<CountedConnection>,
        context: &ConnectionContext,
    ) -> Result<Self, Error> {
        let Endpoint {
            config,
            token,
            session,
        } = endpoint;
        let ConnectionContext {
            mask,
            shutdown,
            tasks,
        } = context;
        let server = || config.name.clone();
        let no_handshake = |fault: String| Error::Handshake {
            server: server(),
            fault,
        };
        if shutdown.is_cancelled() {
            return Err(no_handshake("the worker is stopping".to_owned()));
        }
        let end = shutdown.child_token();
        let tools_changed = Arc::new(AtomicBool::new(false));
        let lost = Arc::new(AtomicBool::new(false));
        let ended = CancellationToken::new();
        let pending = PendingCalls::new(tasks.clone(), ended.clone());
        let client = TarsyClient {
            tools_changed: Arc::clone(&tools_changed),
            pending: pending.clone(),
        };
        let service = match &config.transport {
            Transport::Stdio(program) => {
                let spawned = child::spawn(program, ended.clone());
                let command = program.command.clone();
                let (process, stderr) = spawned.map_err(|source| Error::Spawn {
                    server: server(),
                    command,
                    source,
                })?;
                if let Some(stderr) = stderr {
                    tasks.spawn(child::log_stderr(server(), stderr, mask.clone()));
                }
                handshake(
                    &config.name,
                    Box::pin(serve_client_with_ct(client, process, end.clone())),
                )
                .await?
            }
            Transport::Http(address) => {
                let prepared =
                    http::transport(address, token.cloned(), Arc::clone(&lost), session.cloned());
                let transport = prepared.map_err(|fault| no_handshake(fault.to_string()))?;
                handshake(
                    &config.name,
                    Box::pin(serve_client_with_ct(client, transport, end.clone())),
                )
                .await?
            }
        };
        let peer = service.peer().clone();
        let name = server();
        tasks.spawn(async move {
            run_connection(&name, service).await;
            tracing::debug!(
                server = name,
                own = counted.is_some(),
                "mcp server connection is closed"
            );
            // The process has exited, so another session may open a connection.
            drop(counted);
        });
        Ok(Self {
            peer,
            needs_ping: AtomicBool::new(false),
            tools_changed,
            pending,
            lost,
            ended,
            in_flight: Arc::default(),
            _ends_with_this: end.drop_guard(),
        })
    }

    /// Whether the connection to the process is open.
    pub(super) fn is_open(&self) -> bool {
        !self.peer.is_transport_closed()
            && !self.lost.load(Ordering::Relaxed)
            && !self.ended.is_cancelled()
    }

    /// Whether a call is in flight.
    pub(super) fn is_busy(&self) -> bool {
        Arc::strong_count(&self.in_flight) > 1
    }

    /// Whether the server has announced a change of its tools.
    pub(super) fn tools_changed(&self) -> bool {
        self.tools_changed.load(Ordering::Relaxed)
    }

    pub(super) fn clear_tools_changed(&self) {
        self.tools_changed.store(false, Ordering::Relaxed);
    }

    /// Whether a request can be sent. After a timeout the server has to answer a ping first.
    pub(super) async fn is_usable(&self) -> bool {
        if !self.is_open() {
            return false;
        }
        if !self.needs_ping.load(Ordering::Relaxed) {
            return true;
        }
        let ping = self
            .peer
            .send_request(ClientRequest::PingRequest(PingRequest::default()));
        let alive = matches!(tokio::time::timeout(PING_TIMEOUT, ping).await, Ok(Ok(_)));
        if alive {
            self.needs_ping.store(false, Ordering::Relaxed);
        }
        alive
    }

    /// All tools of the server.
    pub(super) async fn list_tools(&self, server: &str) -> Result<Vec<Declared>, Error> {
        let request = "tools/list";
        match pages::read(&self.peer, &self.pending, LIST_TIMEOUT).await {
            Ok(tools) => Ok(tools),
            Err(ListFault::Refused(fault)) => Err(Error::Request {
                server: server.to_owned(),
                request,
                fault,
            }),
            Err(ListFault::Timeout) => {
                self.needs_ping.store(true, Ordering::Relaxed);
                Err(Error::NoAnswer {
                    server: server.to_owned(),
                    request,
                    within: LIST_TIMEOUT,
                })
            }
        }
    }

    /// Sends one call once. When this future is dropped or times out, a cancellation of the call is sent to the server.
    pub(super) async fn call(
        &self,
        params: CallToolRequestParams,
        timeouts: RequestTimeouts,
    ) -> Result<CallToolResult, CallFailure> {
        let _in_flight = Arc::clone(&self.in_flight);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let no_result = |fault: &str| Err(CallFailure::Refused(fault.to_owned()));
        match self.pending.send(&self.peer, request, timeouts).await {
            Ok(ServerResult::CallToolResult(result)) => Ok(result),
            Ok(ServerResult::InputRequiredResult(_) | ServerResult::CreateTaskResult(_)) => {
                no_result("the tool sent a request instead of a result")
            }
            Ok(ServerResult::CustomResult(other)) if let Some(result) = result::parse(&other.0) => {
                Ok(result)
            }
            Ok(_) => no_result("the tool sent a message that is no result of a tool"),
            // The server has answered, and perhaps done its work: its connection is as good as before.
            Err(NoAnswer::Failed(ServiceError::McpError(error))) if error.code.0 == UNREADABLE => {
                Err(CallFailure::Unreadable(error.message.into_owned()))
            }
            Err(NoAnswer::Failed(ServiceError::McpError(error))) => no_result(&words(&error)),
            Err(NoAnswer::Failed(ServiceError::TransportSend(error))) => {
                let TransportFault { text, unsent } = fault_of(&error);
                Err(if unsent {
                    CallFailure::Unsent(text)
                } else {
                    CallFailure::Broken(text)
                })
            }
            Err(NoAnswer::Failed(error)) => Err(CallFailure::Broken(format!(
                "connection lost during the call: {error}"
            ))),
            Err(NoAnswer::Timeout(expired)) => {
                self.needs_ping.store(true, Ordering::Relaxed);
                Err(CallFailure::Timeout(expired))
            }
        }
    }
}

/// The message of an error with its details, which often say more: "Internal error".
fn words(error: &ErrorData) -> String {
    match &error.data {
        None | Some(Value::Null) => error.message.to_string(),
        Some(Value::String(details)) => format!("{}: {details}", error.message),
        Some(details) => format!("{}: {details}", error.message),
    }
}

/// Completes the handshake in time.
async fn handshake(
    server: &str,
    connecting: impl Future<
        Output = Result<RunningService<RoleClient, TarsyClient>, ClientInitializeError>,
    >,
) -> Result<RunningService<RoleClient, TarsyClient>, Error> {
    let connected = tokio::time::timeout(HANDSHAKE_TIMEOUT, connecting).await;
    let connected =
        connected.map_err(|_| Error::no_handshake(server.to_owned(), HANDSHAKE_TIMEOUT))?;
    connected.map_err(|error| Error::Handshake {
        server: server.to_owned(),
        fault: describe(&error),
    })
}

/// The reason, at most some hundred characters of it: a server that speaks another protocol may have sent anything.
fn describe(error: &ClientInitializeError) -> String {
    if let ClientInitializeError::TransportError { error, .. } = error {
        return fault_of(error).text;
    }
    error.to_string().chars().take(MAX_FAULT_CHARS).collect()
}

/// Handles the notifications of a server.
struct TarsyClient {
    tools_changed: Arc<AtomicBool>,
    pending: PendingCalls,
}

impl ClientHandler for TarsyClient {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new("tarsy", env!("CARGO_PKG_VERSION")),
        )
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.tools_changed.store(true, Ordering::Relaxed);
    }

    async fn on_progress(
        &self,
        report: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.pending.progressed(&report.progress_token);
    }
}

/// Runs the connection until the server or the worker ends it.
async fn run_connection(server: &str, service: RunningService<RoleClient, TarsyClient>) {
    match service.waiting().await {
        Ok(reason) => tracing::debug!(server, ?reason, "mcp server connection ended"),
        Err(error) => tracing::warn!(server, %error, "mcp server connection failed"),
    }
}
