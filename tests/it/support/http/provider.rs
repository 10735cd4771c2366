//! A fake provider: an HTTP endpoint that answers requests in order with prepared responses, and keeps the requests.

use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

const TIMEOUT: Duration = Duration::from_secs(180);

/// A prepared response.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Status 200 with these events.
    Events(String),
    /// A status with a JSON body.
    Error(u16, &'static str),
    /// No response: the request waits until its client is gone.
    Held,
    /// Events that are sent once the test has opened the gate.
    Gated(Arc<Notify>, String),
}

impl Reply {
    /// Events without names.
    pub(crate) fn events(events: &[impl Display]) -> Self {
        Self::Events(
            events
                .iter()
                .map(|event| format!("data: {event}\n\n"))
                .collect(),
        )
    }

    /// The same events, held until the gate is opened with `notify_one`.
    pub(crate) fn behind(self, gate: &Arc<Notify>) -> Self {
        let Self::Events(events) = self else {
            panic!("only events can be held: {self:?}")
        };
        Self::Gated(Arc::clone(gate), events)
    }

    /// Events whose name is the `type` of their JSON.
    pub(crate) fn typed(events: &[Value]) -> Self {
        let name = |event: &Value| event["type"].as_str().unwrap_or_default().to_owned();
        Self::Events(
            events
                .iter()
                .map(|event| format!("event: {}\ndata: {event}\n\n", name(event)))
                .collect(),
        )
    }
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    /// First line and headers.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Received {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// The endpoint; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct FakeProvider {
    address: String,
    shared: Arc<Shared>,
    _server: AbortOnDropHandle<()>,
}

#[derive(Debug)]
struct Shared {
    replies: Mutex<VecDeque<Reply>>,
    requests: Mutex<Vec<Received>>,
    arrived: Notify,
}

impl FakeProvider {
    /// Starts an endpoint. After the last reply it answers 500.
    pub(crate) async fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared = Arc::new(Shared {
            replies: Mutex::new(replies.into()),
            requests: Mutex::default(),
            arrived: Notify::new(),
        });
        let serving = Arc::clone(&shared);
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&serving)));
            }
        });
        Self {
            address,
            shared,
            _server: AbortOnDropHandle::new(server),
        }
    }

    /// Its address with the scheme.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far, in order.
    pub(crate) fn requests(&self) -> Vec<Received> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Returns when this number of requests has arrived.
    pub(crate) async fn asked(&self, count: usize) {
        let enough = async {
            loop {
                let arrived = self.shared.arrived.notified();
                if self.requests().len() >= count {
                    return;
                }
                arrived.await;
            }
        };
        let found = tokio::time::timeout(TIMEOUT, enough).await;
        assert!(
            found.is_ok(),
            "only {} of {count} requests in time",
            self.requests().len()
        );
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) -> Option<()> {
    let received = read(&mut stream).await?;
    shared.requests.lock().unwrap().push(received);
    shared.arrived.notify_waiters();
    let reply = shared.replies.lock().unwrap().pop_front();
    let (status, kind, body) = match reply {
        Some(Reply::Events(events)) => (200, "text/event-stream", events),
        Some(Reply::Gated(gate, events)) => {
            gate.notified().await;
            (200, "text/event-stream", events)
        }
        Some(Reply::Error(status, body)) => (status, "application/json", body.to_owned()),
        Some(Reply::Held) => {
            let _gone = stream.read(&mut [0; 1]).await;
            return None;
        }
        None => (500, "application/json", "{}".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status} x\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream
        .write_all(format!("{head}{body}").as_bytes())
        .await
        .ok()?;
    stream.shutdown().await.ok()
}

/// Reads one request.
pub(crate) async fn read(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.trim().parse::<usize>().ok())
                    .flatten()
            });
            if body.len() >= length.unwrap_or(0) {
                return Some(Received {
                    head: head.to_owned(),
                    body: body.to_owned(),
                });
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
