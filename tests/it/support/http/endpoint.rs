//! An HTTP endpoint whose answers a test decides request by request.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

/// A request, as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// With its query.
    pub(crate) path: String,
    head: String,
    pub(crate) body: String,
}

impl Request {
    /// The value of a header; its name is not case sensitive.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    status: u16,
    headers: &'static str,
    body: String,
    delay: Duration,
}

impl Reply {
    pub(crate) fn of(status: u16) -> Self {
        Self {
            status,
            headers: "",
            body: String::new(),
            delay: Duration::ZERO,
        }
    }

    pub(crate) fn json(body: &serde_json::Value) -> Self {
        Self {
            body: body.to_string(),
            ..Self::of(200)
        }
    }

    /// Status 200 with these server-sent events.
    pub(crate) fn events(events: &[serde_json::Value]) -> Self {
        let body = events
            .iter()
            .map(|event| format!("data: {event}\n\n"))
            .collect();
        Self {
            body,
            headers: "content-type: text/event-stream\r\n",
            ..Self::of(200)
        }
    }

    /// The same body with another status.
    pub(crate) fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// The answer with further lines of its head, each with its line break.
    pub(crate) fn with(self, headers: &'static str) -> Self {
        Self { headers, ..self }
    }

    /// The answer after this time.
    pub(crate) fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }
}

type Policy = Box<dyn Fn(&Request) -> Reply + Send + Sync>;

/// The endpoint; it ends when this is dropped.
pub(crate) struct Endpoint {
    address: String,
    shared: Arc<Shared>,
    _server: AbortOnDropHandle<()>,
}

struct Shared {
    policy: Mutex<Policy>,
    requests: Mutex<Vec<(Request, u16)>>,
}

impl Endpoint {
    /// Starts an endpoint; `policy` decides each answer.
    pub(crate) async fn start(policy: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared = Arc::new(Shared {
            policy: Mutex::new(Box::new(policy)),
            requests: Mutex::default(),
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

    /// An endpoint that accepts everything.
    pub(crate) async fn accepting() -> Self {
        Self::start(|_| Reply::of(200)).await
    }

    /// Decides the answers from now on.
    pub(crate) fn decide(&self, policy: impl Fn(&Request) -> Reply + Send + Sync + 'static) {
        *self.shared.policy.lock().unwrap() = Box::new(policy);
    }

    /// Its address with the scheme.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far, in order of their arrival.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared
            .requests
            .lock()
            .unwrap()
            .iter()
            .map(|(request, _)| request.clone())
            .collect()
    }

    /// The requests that were answered with success.
    pub(crate) fn accepted(&self) -> Vec<Request> {
        let requests = self.shared.requests.lock().unwrap();
        requests
            .iter()
            .filter(|(_, status)| *status == 200)
            .map(|(request, _)| request.clone())
            .collect()
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) -> Option<()> {
    let mut bytes = Vec::new();
    while let Some(request) = read(&mut stream, &mut bytes).await {
        let reply = {
            let reply = (shared.policy.lock().unwrap())(&request);
            shared
                .requests
                .lock()
                .unwrap()
                .push((request, reply.status));
            reply
        };
        tokio::time::sleep(reply.delay).await; // the delay of the answer
        let Reply {
            status,
            headers,
            body,
            ..
        } = reply;
        let head = format!(
            "HTTP/1.1 {status} x\r\n{headers}content-length: {}\r\n\r\n",
            body.len()
        );
        stream
            .write_all(format!("{head}{body}").as_bytes())
            .await
            .ok()?;
    }
    Some(())
}

/// The next request of a connection.
async fn read(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<Request> {
    loop {
        let text = String::from_utf8_lossy(bytes).into_owned();
        if let Some((head, rest)) = text.split_once("\r\n\r\n") {
            let mut words = head.split(' ').map(str::to_owned);
            let (method, path) = (words.next()?, words.next()?);
            let request = Request {
                method,
                path,
                head: head.to_owned(),
                body: String::new(),
            };
            let length = request
                .header("content-length")
                .and_then(|value| value.parse().ok())
                .unwrap_or(0);
            if rest.len() >= length {
                let body = rest[..length].to_owned();
                bytes.drain(..head.len() + 4 + length);
                return Some(Request { body, ..request });
            }
        }
        if stream.read_buf(bytes).await.ok()? == 0 {
            return None;
        }
    }
}
