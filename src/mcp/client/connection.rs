//! One connection to one MCP server: its child process, and the requests that are sent to it.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, ClientRequest, Implementation,
    PingRequest, Tool,
};
use rmcp::service::{NotificationContext, RunningService, ServiceError, serve_client_with_ct};
use rmcp::{ClientHandler, Peer, RoleClient};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{ChildStderr, Command};
use tokio_util::sync::DropGuard;

use super::process::ServerProcess;
use super::{ServerConfig, Surroundings};
use crate::investigation::mask::Mask;
use crate::mcp::Error;

/// How long a server may take to start and complete the handshake.
const HANDSHAKE: Duration = Duration::from_secs(30);
/// How long a server may take to list its tools.
const LIST: Duration = Duration::from_secs(30);
/// How long a server that let a call time out may take to show that it lives.
const PING: Duration = Duration::from_secs(3);

/// Longer lines of a child's standard error are logged in pieces.
const MAX_LINE: u64 = 8 * 1024;

/// What a child sees of the worker's environment besides its own configuration: never the worker's secrets.
const INHERITED: [&str; 20] = [
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

/// A child process that speaks MCP. Dropping it ends the process: input closed, then SIGTERM, then SIGKILL.
#[derive(Debug)]
pub(super) struct Connection {
    peer: Peer<RoleClient>,
    suspect: AtomicBool,
    changed: Arc<AtomicBool>,
    calls: AtomicUsize,
    _ends_with_this: DropGuard,
}

/// Why a request that was sent has no result.
pub(super) enum CallFailure {
    /// The server answered with a protocol error.
    Refused(String),
    /// The connection broke.
    Broken(String),
    /// No answer in time; the server was told to stop.
    Timeout,
}

impl Connection {
    /// Starts the server's process and completes the handshake. The tasks that keep the connection end with
    /// the surroundings' shutdown.
    pub(super) async fn open(config: &ServerConfig, surroundings: &Surroundings) -> Result<Self, Error> {
        let Surroundings { mask, shutdown, tasks } = surroundings;
        if shutdown.is_cancelled() {
            return Err(Error::Handshake { server: config.name.clone(), fault: "the worker stops".to_owned() });
        }
        let (process, stderr) = spawn(config)?;
        if let Some(stderr) = stderr {
            tasks.spawn(drain(config.name.clone(), stderr, mask.clone()));
        }
        let end = shutdown.child_token();
        let changed = Arc::new(AtomicBool::new(false));
        let client = TarsyClient { identity: identity(), changed: Arc::clone(&changed) };
        let connecting = serve_client_with_ct(client, process, end.clone());
        let service = match tokio::time::timeout(HANDSHAKE, connecting).await {
            Ok(Ok(service)) => service,
            Ok(Err(error)) => {
                return Err(Error::Handshake { server: config.name.clone(), fault: error.to_string() });
            }
            Err(_) => {
                return Err(Error::Silent { server: config.name.clone(), what: "the handshake", within: HANDSHAKE });
            }
        };
        let peer = service.peer().clone();
        tasks.spawn(keep(config.name.clone(), service));
        let (suspect, calls) = (AtomicBool::new(false), AtomicUsize::new(0));
        Ok(Self { peer, suspect, changed, calls, _ends_with_this: end.drop_guard() })
    }

    /// Whether the server's process still reads and writes.
    pub(super) fn is_open(&self) -> bool {
        !self.peer.is_transport_closed()
    }

    /// Whether a call is on its way.
    pub(super) fn is_busy(&self) -> bool {
        self.calls.load(Ordering::Relaxed) > 0
    }

    /// Whether the server said that its list of tools is another one now.
    pub(super) fn has_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }

    pub(super) fn forget_changes(&self) {
        self.changed.store(false, Ordering::Relaxed);
    }

    /// Whether a request can be sent. A server that let a call time out has to answer a ping first.
    pub(super) async fn usable(&self) -> bool {
        if !self.is_open() {
            return false;
        }
        if !self.suspect.load(Ordering::Relaxed) {
            return true;
        }
        let ping = self.peer.send_request(ClientRequest::PingRequest(PingRequest::default()));
        let alive = matches!(tokio::time::timeout(PING, ping).await, Ok(Ok(_)));
        if alive {
            self.suspect.store(false, Ordering::Relaxed);
        }
        alive
    }

    /// Everything the server offers.
    pub(super) async fn tools(&self, server: &str) -> Result<Vec<Tool>, Error> {
        let what = "tools/list";
        match tokio::time::timeout(LIST, self.peer.list_all_tools()).await {
            Ok(Ok(tools)) => Ok(tools),
            Ok(Err(error)) => Err(Error::Request { server: server.to_owned(), what, fault: error.to_string() }),
            Err(_) => {
                self.suspect.store(true, Ordering::Relaxed);
                Err(Error::Silent { server: server.to_owned(), what, within: LIST })
            }
        }
    }

    /// Sends one call once. When this future is dropped or its time is over, the server is told that the call is
    /// cancelled.
    pub(super) async fn call(
        &self,
        params: CallToolRequestParams,
        timeout: Duration,
    ) -> Result<CallToolResponse, CallFailure> {
        let _counted = Counted::new(&self.calls);
        match tokio::time::timeout(timeout, self.peer.call_tool_once(params)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(ServiceError::McpError(error))) => Err(CallFailure::Refused(error.message.into_owned())),
            Ok(Err(error)) => Err(CallFailure::Broken(error.to_string())),
            Err(_) => {
                self.suspect.store(true, Ordering::Relaxed);
                Err(CallFailure::Timeout)
            }
        }
    }
}

/// A call that is on its way.
struct Counted<'c>(&'c AtomicUsize);

impl<'c> Counted<'c> {
    fn new(calls: &'c AtomicUsize) -> Self {
        calls.fetch_add(1, Ordering::Relaxed);
        Self(calls)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a server can say of its own accord.
struct TarsyClient {
    identity: ClientConfig,
    changed: Arc<AtomicBool>,
}

impl ClientHandler for TarsyClient {
    fn get_info(&self) -> ClientConfig {
        self.identity.clone()
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.store(true, Ordering::Relaxed);
    }
}

fn identity() -> ClientConfig {
    ClientConfig::new(ClientCapabilities::default(), Implementation::new("tarsy", env!("CARGO_PKG_VERSION")))
}

fn spawn(config: &ServerConfig) -> Result<(ServerProcess, Option<ChildStderr>), Error> {
    let mut command = Command::new(&config.command);
    command.args(&config.args).env_clear();
    command.envs(INHERITED.iter().filter_map(|name| Some((name, inherited(name, std::env::var_os(name)?)))));
    command.envs(&config.env);
    // A group of its own: Ctrl-C at the worker's terminal is for the worker, which ends its children in order.
    command.process_group(0);
    ServerProcess::start(command).map_err(|source| Error::Spawn {
        server: config.name.clone(),
        command: config.command.clone(),
        source,
    })
}

/// A variable as a child gets it: a proxy's address without the password, which is the worker's. Who wants a server to
/// have it says so in the server's own `env`.
fn inherited(name: &str, value: OsString) -> OsString {
    if !name.ends_with("_PROXY") {
        return value;
    }
    let Some(text) = value.to_str() else { return OsString::new() };
    let (scheme, rest) = text.split_once("://").map_or(("", text), |(scheme, rest)| (scheme, rest));
    let Some((_, host)) = rest.rsplit_once('@') else { return value };
    if scheme.is_empty() { host.into() } else { format!("{scheme}://{host}").into() }
}

/// Owns the connection until the server or the worker ends it.
async fn keep(server: String, service: RunningService<RoleClient, TarsyClient>) {
    match service.waiting().await {
        Ok(reason) => tracing::debug!(server, ?reason, "connection to mcp server ended"),
        Err(error) => tracing::warn!(server, %error, "task of mcp server failed"),
    }
}

/// A child whose standard error nobody reads stops at some point. Ends with the child.
async fn drain(server: String, stderr: ChildStderr, mask: Mask) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    while let Ok(1..) = (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line).await {
        let text = String::from_utf8_lossy(&line);
        tracing::debug!(server, text = %mask.apply(text.trim_end()), "mcp server wrote to stderr");
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_gets_the_address_of_a_proxy_and_no_password() {
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
