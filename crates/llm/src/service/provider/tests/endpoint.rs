//! An HTTP endpoint that answers requests in order with prepared responses, and remembers them.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

/// A prepared response.
#[derive(Clone, Debug)]
pub struct Reply {
    status: u16,
    headers: String,
    body: Vec<u8>,
    /// The bytes of one write.
    piece: usize,
    ending: Ending,
}

/// The end of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Whole,
    /// The connection is closed before the end.
    Cut,
    /// Nothing more is sent, and the connection stays open.
    Hang,
    /// The connection is closed before the headers.
    NoHeaders,
    /// Not even the headers are sent, and the connection stays open.
    Silent,
}

impl Reply {
    /// A response 200 with these bytes.
    pub fn stream(body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: 200,
            headers: String::new(),
            body: body.into(),
            piece: 4_096,
            ending: Ending::Whole,
        }
    }

    /// A response 200 with one event for each of these texts.
    pub fn events(events: &[&str]) -> Self {
        Self::stream(
            events
                .iter()
                .map(|event| format!("data: {event}\r\n\r\n"))
                .collect::<String>(),
        )
    }

    /// A fixture: a path below `tests/fixtures/`.
    pub fn fixture(name: &str) -> Self {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures");
        Self::stream(std::fs::read(directory.join(name)).unwrap())
    }

    pub fn error(status: u16, body: &str) -> Self {
        Self {
            status,
            ..Self::stream(body)
        }
    }

    pub(crate) fn in_pieces_of(self, piece: usize) -> Self {
        Self { piece, ..self }
    }

    pub(crate) fn ending(self, ending: Ending) -> Self {
        Self { ending, ..self }
    }

    pub(crate) fn with_header(self, header: &str) -> Self {
        Self {
            headers: format!("{}{header}\r\n", self.headers),
            ..self
        }
    }
}

/// A request that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    /// Method, path and query.
    pub target: String,
    pub headers: String,
    pub body: String,
}

/// The endpoint; it stops when it is dropped.
pub(crate) struct Endpoint {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<Received>>>,
    _task: AbortOnDropHandle<()>,
}

impl Endpoint {
    /// Requests beyond the last reply get the last one again.
    pub(crate) async fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let received = Arc::clone(&requests);
        let task = tokio::spawn(async move {
            let mut replies = VecDeque::from(replies);
            while let Ok((mut stream, _)) = listener.accept().await {
                let Some(request) = read(&mut stream).await else {
                    continue;
                };
                received.lock().push(request);
                let reply = if replies.len() > 1 {
                    replies.pop_front()
                } else {
                    replies.front().cloned()
                };
                tokio::spawn(write(stream, reply.unwrap()));
            }
        });
        Self {
            address,
            requests,
            _task: AbortOnDropHandle::new(task),
        }
    }

    pub(crate) fn requests(&self) -> Vec<Received> {
        self.requests.lock().clone()
    }

    /// The bodies of the requests.
    pub(crate) fn bodies(&self) -> Vec<String> {
        self.requests()
            .into_iter()
            .map(|request| request.body)
            .collect()
    }
}

async fn read(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).ok()?;
    let (target, headers) = head.split_once("\r\n")?;
    let length = headers
        .to_lowercase()
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let length: usize = length.unwrap_or_default();
    let mut body = bytes.split_off(head_end);
    while body.len() < length {
        stream.read_buf(&mut body).await.ok()?;
    }
    let target = target.trim_end_matches(" HTTP/1.1").to_owned();
    Some(Received {
        target,
        headers: headers.to_owned(),
        body: String::from_utf8(body).ok()?,
    })
}

/// Writes a response in chunks, so that a lost end is noticed.
async fn write(mut stream: TcpStream, reply: Reply) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    match reply.ending {
        Ending::NoHeaders => return None,
        Ending::Silent => hang().await,
        Ending::Whole | Ending::Cut | Ending::Hang => {}
    }
    let Reply {
        status,
        headers,
        body,
        piece,
        ending,
    } = reply;
    let head = format!(
        "HTTP/1.1 {status} S\r\nconnection: close\r\ntransfer-encoding: chunked\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes()).await.ok()?;
    for bytes in body.chunks(piece) {
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        stream.write_all(&chunk).await.ok()?;
    }
    match ending {
        Ending::Hang => hang().await,
        Ending::Whole => stream.write_all(b"0\r\n\r\n").await.ok()?,
        Ending::Cut | Ending::NoHeaders | Ending::Silent => {}
    }
    stream.shutdown().await.ok()
}

async fn hang() {
    std::future::pending().await
}
