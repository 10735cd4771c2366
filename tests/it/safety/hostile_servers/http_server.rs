//! An MCP server over HTTP that does what no server should do. Each of its tools has the name of a behaviour. It writes
//! its answers byte by byte, so that it can break HTTP as well.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tarsy_http::outgoing::token::TokenSource;
use tarsy_mcp::{HttpConfig, ServerConfig, Transport};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::server::{FAKE, tool};
use crate::support::wait::eventually;

const MIB: usize = 1024 * 1024;
/// Far more than a client may read.
const HUGE_BYTES: usize = 50 * MIB;
/// The time between two pieces of an answer that does not end.
const PIECE_INTERVAL: Duration = Duration::from_millis(5);
pub(super) const TOKEN: &str = "t0ken-of-the-hostile-server";

/// A running server; one task for each connection.
#[derive(Clone)]
pub(super) struct HostileHttp {
    port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    tools: Vec<Value>,
    /// The target of `redirect`.
    elsewhere: String,
    /// Whether streams of events are opened, and end at once.
    restless: AtomicBool,
    /// The method of each message, or that of HTTP, with the name of the tool.
    seen: Mutex<Vec<Seen>>,
    /// Calls whose connection is still open although they have no answer.
    unanswered: AtomicUsize,
    connections: AtomicUsize,
    sessions: AtomicUsize,
    /// Ends the calls of `wait`.
    go: Arc<Notify>,
}

#[derive(Clone)]
pub(super) struct Seen {
    pub(super) what: String,
    pub(super) at: Instant,
}

struct Request {
    method: String,
    message: Value,
}

/// The next action of a connection after a request.
enum Next {
    Read,
    Close,
}

impl HostileHttp {
    /// Starts a server that lists these tools, each as read-only.
    pub(super) async fn start(tools: &[&str], elsewhere: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let tools = tools.iter().map(|name| tool(name)).collect();
        let state = Arc::new(State {
            tools,
            elsewhere: elsewhere.to_owned(),
            ..State::default()
        });
        let server = Self {
            port,
            state: Arc::clone(&state),
        };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                state.connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(stream, Arc::clone(&state)));
            }
        });
        server
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// The server as a line of `mcp_servers`, with further keys like `tool_timeout: 1s`.
    pub(super) fn config_line(&self, name: &str, keys: &str) -> String {
        format!(
            "  {name}: {{url: '{}', headers: {{X-Key: {TOKEN}}}, {keys}}}\n",
            self.url()
        )
    }

    pub(super) fn config(&self, name: &str) -> ServerConfig {
        let token = Some(TokenSource::Value(TOKEN.to_owned()));
        let address = HttpConfig {
            url: self.url(),
            token,
            ..HttpConfig::default()
        };
        ServerConfig::new(name.to_owned(), Transport::Http(address))
    }

    /// From now on each stream of events ends as soon as it has begun.
    pub(super) fn be_restless(&self) {
        self.state.restless.store(true, Ordering::Relaxed);
    }

    /// The requests of this kind: `GET`, `initialize`, `tools/call hang`.
    pub(super) fn seen(&self, what: &str) -> Vec<Seen> {
        self.state
            .seen
            .lock()
            .unwrap()
            .iter()
            .filter(|seen| seen.what == what)
            .cloned()
            .collect()
    }

    /// Waits until this tool was called so often.
    pub(super) async fn called(&self, tool: &str, times: usize) {
        let what = format!("tools/call {tool}");
        eventually(&format!("{tool} is called {times} times"), async || {
            self.seen(&what).len() >= times
        })
        .await;
    }

    /// Answers the calls of `wait` that are in flight.
    pub(super) fn go(&self) {
        self.state.go.notify_waiters();
    }

    /// Calls whose connection is still open although they have no answer.
    pub(super) fn unanswered(&self) -> usize {
        self.state.unanswered.load(Ordering::Relaxed)
    }

    pub(super) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }
}

async fn serve(stream: TcpStream, state: Arc<State>) {
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    while let Some(request) = read(&mut reader).await {
        let next = answer(&request, &state, &mut reader, &mut writer).await;
        if matches!(next, Next::Close) {
            return;
        }
    }
}

async fn read(reader: &mut BufReader<OwnedReadHalf>) -> Option<Request> {
    let (mut method, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if method.is_empty() {
            method = line.split(' ').next().unwrap().to_ascii_uppercase();
        }
        if let Some(bytes) = line.strip_prefix("content-length:") {
            length = bytes.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await.ok()?;
    Some(Request {
        method,
        message: serde_json::from_slice(&body).unwrap_or_default(),
    })
}

async fn answer(
    request: &Request,
    state: &State,
    reader: &mut BufReader<OwnedReadHalf>,
    writer: &mut OwnedWriteHalf,
) -> Next {
    let message = &request.message;
    let name = message["params"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let method = message["method"]
        .as_str()
        .unwrap_or(&request.method)
        .to_owned();
    let go = Arc::clone(&state.go).notified_owned();
    let what = if method == "tools/call" {
        format!("{method} {name}")
    } else {
        method.clone()
    };
    state.seen.lock().unwrap().push(Seen {
        what,
        at: Instant::now(),
    });
    let bytes = match method.as_str() {
        "initialize" => initialized(message, state),
        "tools/list" => result(message, &json!({"tools": state.tools})),
        "ping" => result(message, &json!({})),
        "GET" if state.restless.load(Ordering::Relaxed) => return restless(state, writer).await,
        "GET" | "DELETE" => response("405 Method Not Allowed", "text/plain", ""),
        "tools/call" if name == "wait" => {
            go.await;
            text(message, "waited")
        }
        "tools/call" => {
            let counted = Unanswered::of(&state.unanswered);
            let Some(bytes) = call(&name, message, state, writer).await else {
                // Until the client closes the connection.
                let mut rest = Vec::new();
                reader.read_to_end(&mut rest).await.ok();
                return Next::Close;
            };
            drop(counted);
            bytes
        }
        _ => response("202 Accepted", "text/plain", ""),
    };
    if writer.write_all(&bytes).await.is_ok() {
        Next::Read
    } else {
        Next::Close
    }
}

fn initialized(message: &Value, state: &State) -> Vec<u8> {
    let number = state.sessions.fetch_add(1, Ordering::Relaxed);
    let info = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": true}},
        "serverInfo": {"name": FAKE, "version": "1"}, "instructions": FAKE});
    let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": info}).to_string();
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: s-{number}\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// A stream that ends at once and wants to be opened again at once; each second one breaks.
async fn restless(state: &State, writer: &mut OwnedWriteHalf) -> Next {
    let streams = state
        .seen
        .lock()
        .unwrap()
        .iter()
        .filter(|seen| seen.what == "GET")
        .count();
    let rest = if streams % 2 == 0 {
        "connection: close\r\n\r\nid: 1\nretry: 0\n\n"
    } else {
        "transfer-encoding: chunked\r\n\r\nno chunk"
    };
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
    writer
        .write_all(format!("{head}{rest}").as_bytes())
        .await
        .ok();
    Next::Close
}

/// The answer to a call; `None` when it was written here, or when there is none.
async fn call(
    name: &str,
    message: &Value,
    state: &State,
    writer: &mut OwnedWriteHalf,
) -> Option<Vec<u8>> {
    let events = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let json_head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
    let chunked = format!("{json_head}transfer-encoding: chunked\r\n\r\n");
    let log = json!({"jsonrpc": "2.0", "method": "notifications/message",
        "params": {"level": "error", "logger": FAKE, "data": FAKE}});
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params":
        {"progressToken": message["params"]["_meta"]["progressToken"], "progress": 1, "message": FAKE}});
    let other = json!({"jsonrpc": "2.0", "id": 999_999, "result": {"content": []}}).to_string();
    let padding = "x".repeat(MIB);
    let whole = |status: &str, media: &str, body: &str| Some(response(status, media, body));
    match name {
        "hang" => None,
        "endless_events" => {
            endless(writer, events, &format!("event: message\ndata: {log}\n\n")).await
        }
        "endless_progress" => {
            endless(
                writer,
                events,
                &format!("event: message\ndata: {progress}\n\n"),
            )
            .await
        }
        "endless_event" => endless(writer, events, &format!("data: {padding}\n")).await,
        "endless_body" => endless(writer, &chunked, &format!("{MIB:x}\r\n{padding}\r\n")).await,
        "endless_head" => endless(writer, json_head, &format!("X-Big: {padding}\r\n")).await,
        "endless_continue" => endless(writer, "", "HTTP/1.1 100 Continue\r\n\r\n").await,
        "slow_bytes" => {
            endless(
                writer,
                &format!("{json_head}content-length: 1000000\r\n\r\n"),
                " ",
            )
            .await
        }
        "events_end" => {
            writer
                .write_all(format!("{events}: nothing\n\n").as_bytes())
                .await
                .ok();
            writer.shutdown().await.ok();
            None
        }
        "huge_body" => Some(text(message, &"x".repeat(HUGE_BYTES))),
        "huge_claim" => {
            Some(format!("{json_head}content-length: 99999999999\r\n\r\n{{").into_bytes())
        }
        "huge_head" => {
            Some(format!("{json_head}X-Big: {padding}\r\ncontent-length: 0\r\n\r\n").into_bytes())
        }
        "many_heads" => {
            Some(format!("{json_head}{}\r\n", "X-A: b\r\n".repeat(10_000)).into_bytes())
        }
        "wrong_type" => whole("200 OK", "text/html", "<html>sign in</html>"),
        "deep_json" => whole("200 OK", "application/json", &"[".repeat(100_000)),
        "other_id" => whole("200 OK", "application/json", &other),
        "garbage_chunks" => Some(format!("{chunked}ZZZ\r\n\u{1b}[2J").into_bytes()),
        "garbage_head" => Some(b"\x16\x03\x01\x02\x00\x01\x00 not HTTP\r\n\r\n".to_vec()),
        "two_lengths" => Some(
            format!("{json_head}content-length: 1\r\ncontent-length: 2\r\n\r\n{{}}").into_bytes(),
        ),
        "cut_off" => {
            let half = format!("{json_head}content-length: 100\r\n\r\n{{\"jsonrpc\"");
            writer.write_all(half.as_bytes()).await.ok();
            writer.shutdown().await.ok();
            None
        }
        "redirect" => Some(redirect("307 Temporary Redirect", &state.elsewhere)),
        "redirect_loop" => Some(redirect("308 Permanent Redirect", "/mcp")),
        "redirect_get" => Some(redirect("303 See Other", "/mcp")),
        "unauthorized" => whole("401 Unauthorized", "text/plain", FAKE),
        "expired" => whole("404 Not Found", "text/plain", FAKE),
        "fake" => Some(text(message, FAKE)),
        name => Some(text(message, &format!("answer of {name}"))),
    }
}

/// Writes a piece again and again until the client closes the connection.
async fn endless(writer: &mut OwnedWriteHalf, head: &str, piece: &str) -> Option<Vec<u8>> {
    if writer.write_all(head.as_bytes()).await.is_err() {
        return None;
    }
    while writer.write_all(piece.as_bytes()).await.is_ok() {
        tokio::time::sleep(PIECE_INTERVAL).await; // the pace of a server that never ends
    }
    None
}

fn text(message: &Value, text: &str) -> Vec<u8> {
    result(
        message,
        &json!({"content": [{"type": "text", "text": text}]}),
    )
}

fn result(message: &Value, result: &Value) -> Vec<u8> {
    response(
        "200 OK",
        "application/json",
        &json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string(),
    )
}

fn redirect(status: &str, to: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n").into_bytes()
}

fn response(status: &str, media: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {media}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Counts a call until it is answered or its connection is closed.
struct Unanswered<'a>(&'a AtomicUsize);

impl<'a> Unanswered<'a> {
    fn of(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
