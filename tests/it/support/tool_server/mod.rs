//! An MCP server over streamable HTTP in the process of the test: sessions, tokens, and faults on request.
//!
//! Its tools: `look` (read-only) and `restart` (may change something) answer `done`; `hold_look` and `hold_restart`
//! wait for the test; `large` answers with more than a client reads, `log` with lines of a log, and `tokens` with all
//! tokens that clients sent.

mod answers;

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use hyper::service::service_fn;
use hyper::{HeaderMap, Method};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

/// The form of answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    #[default]
    Json,
    Events,
}

/// The faults of the server in the next tool calls, one each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Answers with this status and an empty body.
    Status(u16),
    /// Answers with this status, and with a body of JSON that says why.
    Refusal(u16, &'static str),
    /// Performs the call, then answers with bytes that are no JSON.
    Garbage,
    /// Performs the call, then closes the connection without an answer.
    Close,
}

/// In which way the server or a proxy before it is a little off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Oddity {
    /// Its JSON has this type; none if empty.
    Type(&'static str),
    /// Its JSON begins with a byte order mark.
    ByteOrderMark,
    /// Each stream begins with these events.
    Events(&'static str),
    /// Its answer to a notification.
    Notification(u16),
    /// A member of its list of tools that is none, as JSON.
    Member(&'static str),
}

/// One request that arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    /// The method of the message: `tools/call`.
    pub(crate) message: String,
    pub(crate) at: std::time::Instant,
}

#[derive(Default)]
struct State {
    form: Form,
    token: Option<String>,
    /// `None`: the server gives no session ids.
    sessions: Option<BTreeSet<String>>,
    faults: VecDeque<Fault>,
    oddity: Option<Oddity>,
    /// The target of a request for `/old`.
    redirect: String,
    /// No request to delete a session is answered.
    holds_deletes: bool,
    seen: Vec<Seen>,
    performed: Vec<Performed>,
}

/// A call that was performed.
#[derive(Clone, Debug)]
pub(crate) struct Performed {
    pub(crate) tool: String,
    pub(crate) arguments: Value,
}

/// A call that waits for the test.
pub(crate) struct Held {
    pub(crate) tool: String,
    answer: oneshot::Sender<()>,
}

impl Held {
    /// Lets the server answer.
    pub(crate) fn release(self) {
        self.answer.send(()).ok();
    }
}

/// The server; its connections end with it.
pub(crate) struct ToolServer {
    address: SocketAddr,
    scheme: &'static str,
    shared: Arc<Shared>,
    held: tokio::sync::Mutex<mpsc::UnboundedReceiver<Held>>,
    task: JoinHandle<()>,
}

struct Shared {
    state: Mutex<State>,
    holds: mpsc::UnboundedSender<Held>,
    tls: Option<TlsAcceptor>,
}

impl ToolServer {
    pub(crate) async fn start(form: Form) -> Self {
        Self::listen(form, None).await
    }

    pub(crate) async fn with_tls(tls: TlsAcceptor) -> Self {
        Self::listen(Form::Json, Some(tls)).await
    }

    async fn listen(form: Form, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (holds, held) = mpsc::unbounded_channel();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let state = Mutex::new(State {
            form,
            sessions: Some(BTreeSet::new()),
            ..State::default()
        });
        let shared = Arc::new(Shared { state, holds, tls });
        let task = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self {
            address,
            scheme,
            shared,
            held: tokio::sync::Mutex::new(held),
            task,
        }
    }

    pub(crate) fn url(&self) -> String {
        let name = if self.scheme == "https" {
            "localhost".to_owned()
        } else {
            self.address.ip().to_string()
        };
        format!("{}://{name}:{}/mcp", self.scheme, self.address.port())
    }

    /// Ends the server with its connections; nothing listens afterwards.
    pub(crate) async fn stop(&mut self) {
        if !self.task.is_finished() {
            self.task.abort();
            (&mut self.task).await.ok();
        }
    }

    /// Listens at the same address again, without the sessions from before.
    pub(crate) async fn restart(&mut self) {
        self.stop().await;
        self.forget_sessions();
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.task = tokio::spawn(accept(listener, Arc::clone(&self.shared)));
    }

    pub(crate) fn forget_sessions(&self) {
        self.with(|state| state.sessions = Some(BTreeSet::new()));
    }

    /// From now on without session ids.
    pub(crate) fn without_sessions(&self) {
        self.with(|state| state.sessions = None);
    }

    /// The only token that is accepted from now on.
    pub(crate) fn accept_token(&self, token: &str) {
        self.with(|state| state.token = Some(token.to_owned()));
    }

    /// Sends requests for `/old` on to this address, and returns the address of `/old`.
    pub(crate) fn redirect(&self, to: &str) -> String {
        self.with(|state| state.redirect = to.to_owned());
        self.url().replace("/mcp", "/old")
    }

    pub(crate) fn answer_as(&self, form: Form) {
        self.with(|state| state.form = form);
    }

    /// Whether a fault waits for its call.
    pub(crate) fn is_about_to_fail(&self) -> bool {
        self.with(|state| !state.faults.is_empty())
    }

    pub(crate) fn hold_deletes(&self) {
        self.with(|state| state.holds_deletes = true);
    }

    pub(crate) fn be_odd(&self, oddity: Oddity) {
        self.with(|state| state.oddity = Some(oddity));
    }

    pub(crate) fn fail_next(&self, faults: &[Fault]) {
        self.with(|state| state.faults.extend(faults));
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.with(|state| state.seen.clone())
    }

    /// The number of times that a message of this method arrived.
    pub(crate) fn count(&self, message: &str) -> usize {
        self.seen()
            .iter()
            .filter(|seen| seen.message == message)
            .count()
    }

    /// The names of the tools that were performed.
    pub(crate) fn performed(&self) -> Vec<String> {
        self.calls().into_iter().map(|call| call.tool).collect()
    }

    /// The calls that were performed.
    pub(crate) fn calls(&self) -> Vec<Performed> {
        self.with(|state| state.performed.clone())
    }

    /// The next call that waits for the test.
    pub(crate) async fn next_held(&self) -> Held {
        self.held.lock().await.recv().await.unwrap()
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.shared.state.lock().unwrap())
    }
}

impl Drop for ToolServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            let Some(tls) = &shared.tls else {
                return serve(stream, &shared).await;
            };
            // A client that does not trust the certificate ends the handshake.
            if let Ok(stream) = tls.accept(stream).await {
                serve(stream, &shared).await;
            }
        });
    }
}

/// Serves one connection until it ends. A call that fails as [`Fault::Close`] ends it without an answer.
async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, shared: &Arc<Shared>) {
    let service = service_fn(move |request| answers::answer(Arc::clone(shared), request));
    hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await
        .ok();
}
