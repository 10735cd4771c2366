//! The connection to one MCP server: starts the child process, does the handshake and sends requests.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ClientRequest,
    Implementation, PingRequest, ProgressNotificationParam, ServerResult, Tool,
};
use rmcp::service::{NotificationContext, RunningService, ServiceError, serve_client_with_ct};
use rmcp::{ClientHandler, Peer, RoleClient};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{ChildStderr, Command};
use tokio_util::sync::DropGuard;

use super::calls::pending::{Expired, NoAnswer, PendingCalls, RequestTimeouts};
use super::config::{ServerConfig, StdioConfig, Transport};
use super::context::ConnectionContext;
use super::pages::{self, ListFault};
use super::process::ServerProcess;
use crate::investigation::mask::Mask;
use crate::mcp::Error;

/// For the start of a server and the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);
/// For the list of tools.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// For the ping after a call that timed out.
const PING_TIMEOUT: Duration = Duration::from_secs(3);

/// Longer lines of a child's standard error are logged in pieces.
const MAX_LOG_LINE_BYTES: u64 = 8 * 1024;

/// The variables that a child inherits from the worker, in addition to its own configuration: none holds a secret.
const INHERITED_VARIABLES: [&str; 20] = [
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "KUBERNETES_SERVICE_HOST",
    "KUBERNETES_SERVICE_PORT",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "NO_PROXY",
    "PATH",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TARSY_GATES",
    "TARSY_TOOL_CALLS_FILE",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
];

/// A running MCP server. Dropping the connection ends its process: input closed, then SIGTERM, then SIGKILL.
#[derive(Debug)]
pub(super) struct Connection {
    peer: Peer<RoleClient>,
    /// A request timed out: a ping has to succeed before the next call.
    needs_ping: AtomicBool,
    tools_changed: Arc<AtomicBool>,
    pending: PendingCalls,
    /// Each call in flight holds a clone.
    in_flight: Arc<()>,
    _ends_with_this: DropGuard,
}

/// Why a request that was sent has no result.
pub(super) enum CallFailure {
    /// The server answered with a protocol error.
    Refused(String),
    /// The connection broke.
    Broken(String),
    /// No answer arrived in time; a cancellation was sent to the server.
    Timeout(Expired),
}

impl Connection {
    /// Starts the server's process and completes the handshake. The connection's tasks end when the context shuts down.
    pub(super) async fn open(config: &ServerConfig, context: &ConnectionContext) -> Result<Self, Error> {
        let ConnectionContext { mask, shutdown, tasks } = context;
        let server = || config.name.clone();
        if shutdown.is_cancelled() {
            return Err(Error::Handshake { server: server(), fault: "the worker is stopping".to_owned() });
        }
        let Transport::Stdio(program) = &config.transport;
        let (process, stderr) = spawn(program).map_err(|source| Error::Spawn {
            server: server(),
            command: program.command.clone(),
            source,
        })?;
        if let Some(stderr) = stderr {
            tasks.spawn(log_stderr(server(), stderr, mask.clone()));
        }
        let end = shutdown.child_token();
        let tools_changed = Arc::new(AtomicBool::new(false));
        let pending = PendingCalls::new(tasks.clone());
        let client = TarsyClient { tools_changed: Arc::clone(&tools_changed), pending: pending.clone() };
        let connecting = serve_client_with_ct(client, process, end.clone());
        let service = tokio::time::timeout(HANDSHAKE_TIMEOUT, connecting).await;
        let service = service.map_err(|_| Error::no_handshake(server(), HANDSHAKE_TIMEOUT))?;
        let service = service.map_err(|error| Error::Handshake { server: server(), fault: error.to_string() })?;
        let peer = service.peer().clone();
        tasks.spawn(run_connection(server(), service));
        Ok(Self {
            peer,
            needs_ping: AtomicBool::new(false),
            tools_changed,
            pending,
            in_flight: Arc::default(),
            _ends_with_this: end.drop_guard(),
        })
    }

    /// Whether the connection to the process is open.
    pub(super) fn is_open(&self) -> bool {
        !self.peer.is_transport_closed()
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
        let ping = self.peer.send_request(ClientRequest::PingRequest(PingRequest::default()));
        let alive = matches!(tokio::time::timeout(PING_TIMEOUT, ping).await, Ok(Ok(_)));
        if alive {
            self.needs_ping.store(false, Ordering::Relaxed);
        }
        alive
    }

    /// All tools of the server.
    pub(super) async fn list_tools(&self, server: &str) -> Result<Vec<Tool>, Error> {
        let request = "tools/list";
        match pages::read(&self.peer, &self.pending, LIST_TIMEOUT).await {
            Ok(tools) => Ok(tools),
            Err(ListFault::Refused(fault)) => Err(Error::Request { server: server.to_owned(), request, fault }),
            Err(ListFault::Timeout) => {
                self.needs_ping.store(true, Ordering::Relaxed);
                Err(Error::NoAnswer { server: server.to_owned(), request, within: LIST_TIMEOUT })
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
            Ok(_) => no_result("the tool sent a message that is no result of a tool"),
            Err(NoAnswer::Failed(ServiceError::McpError(error))) => no_result(&error.message),
            Err(NoAnswer::Failed(error)) => Err(CallFailure::Broken(error.to_string())),
            Err(NoAnswer::Timeout(expired)) => {
                self.needs_ping.store(true, Ordering::Relaxed);
                Err(CallFailure::Timeout(expired))
            }
        }
    }
}

/// Handles the notifications of a server.
struct TarsyClient {
    tools_changed: Arc<AtomicBool>,
    pending: PendingCalls,
}

impl ClientHandler for TarsyClient {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(ClientCapabilities::default(), Implementation::new("tarsy", env!("CARGO_PKG_VERSION")))
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.tools_changed.store(true, Ordering::Relaxed);
    }

    async fn on_progress(&self, report: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.pending.progressed(&report.progress_token);
    }
}

fn spawn(program: &StdioConfig) -> std::io::Result<(ServerProcess, Option<ChildStderr>)> {
    let mut command = Command::new(&program.command);
    command.args(&program.args).env_clear();
    command.envs(INHERITED_VARIABLES.iter().filter_map(|name| Some((name, inherited(name, std::env::var_os(name)?)))));
    command.envs(&program.env);
    // In a process group of its own, a child gets no Ctrl-C from the worker's terminal: the worker ends it in order.
    command.process_group(0);
    ServerProcess::start(command)
}

/// The value of a variable for a child. The address of a proxy loses its password, which belongs to the worker; an
/// operator can set it in the server's own `env`.
fn inherited(name: &str, value: OsString) -> OsString {
    if !name.ends_with("_PROXY") {
        return value;
    }
    let Some(text) = value.to_str() else { return OsString::new() };
    let (scheme, rest) = text.split_once("://").map_or(("", text), |(scheme, rest)| (scheme, rest));
    let Some((_, host)) = rest.rsplit_once('@') else { return value };
    if scheme.is_empty() { host.into() } else { format!("{scheme}://{host}").into() }
}

/// Runs the connection until the server or the worker ends it.
async fn run_connection(server: String, service: RunningService<RoleClient, TarsyClient>) {
    match service.waiting().await {
        Ok(reason) => tracing::debug!(server, ?reason, "mcp server connection ended"),
        Err(error) => tracing::warn!(server, %error, "mcp server connection failed"),
    }
}

/// Logs the standard error of a child until the child ends. Unread output would block the child at some point.
async fn log_stderr(server: String, stderr: ChildStderr, mask: Mask) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    while let Ok(1..) = (&mut reader).take(MAX_LOG_LINE_BYTES).read_until(b'\n', &mut line).await {
        let text = String::from_utf8_lossy(&line);
        tracing::debug!(server, text = %mask.apply(text.trim_end()), "mcp server wrote to stderr");
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_gets_the_address_of_a_proxy_without_its_password() {
        for (name, value, expected) in [
            ("HTTPS_PROXY", "http://user:w0rd@proxy:3128", "http://proxy:3128"),
            ("HTTP_PROXY", "user:w@rd@proxy:3128", "proxy:3128"),
            ("HTTP_PROXY", "http://proxy:3128", "http://proxy:3128"),
            ("NO_PROXY", "localhost,.svc", "localhost,.svc"),
            ("PATH", "/a@b:/bin", "/a@b:/bin"),
        ] {
            assert_eq!(inherited(name, value.into()), expected, "{name}");
        }
    }
}
