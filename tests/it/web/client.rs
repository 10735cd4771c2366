//! The web server under test, and a client whose requests are written out.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::interfaces::receive::metrics_of;
use crate::support::http::{self, Answer};
use crate::support::process::Tarsy;
use crate::support::system::TestSystem;

const TIMEOUT: Duration = Duration::from_secs(180);

/// A running web server.
pub(crate) struct Web {
    pub(crate) process: Tarsy,
    pub(crate) address: String,
    pub(crate) metrics: String,
}

impl Web {
    /// Starts it on the servers of a system, with further variables.
    pub(crate) async fn start(system: &TestSystem, env: &[(&str, &str)]) -> Self {
        Self::start_on(system, "127.0.0.1:0", env).await
    }

    /// Starts it on this address.
    pub(crate) async fn start_on(system: &TestSystem, listen: &str, env: &[(&str, &str)]) -> Self {
        let own = system.env(system.database.url());
        let env = [&own.each()[..], env].concat();
        let mut process = Tarsy::spawn("web", &["web", "--listen", listen], &env);
        let address = process.ready().await;
        let metrics = metrics_of(&mut process).await;
        Self {
            process,
            address,
            metrics,
        }
    }

    /// A request without a body. It is of HTTP/1.0, so that the answer ends with its connection.
    pub(crate) async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        http::send(&self.address, &head(&self.address, method, path, headers)).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[]).await
    }

    /// A successful answer of the API.
    pub(crate) async fn json(&self, path: &str) -> Value {
        let answer = self.get(&format!("/api/v1{path}")).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    }

    pub(crate) async fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let length = body.len().to_string();
        let headers = [headers, &[("content-length", length.as_str())]].concat();
        let mut request = head(&self.address, "POST", path, &headers);
        request.extend(body.as_bytes());
        http::send(&self.address, &request).await
    }

    /// Opens a stream of events.
    pub(crate) async fn stream(&self, path: &str, headers: &[(&str, &str)]) -> Sse {
        Sse::open(&self.address, path, headers).await
    }
}

/// A request up to its body, with the address as its host unless `headers` have another one.
fn head(address: &str, method: &str, path: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.0\r\n");
    if !headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("host"))
    {
        text.push_str(&format!("host: {address}\r\n"));
    }
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    (text + "\r\n").into_bytes()
}

/// A frame of server-sent events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) id: Option<u32>,
    pub(crate) event: String,
    pub(crate) data: String,
}

impl Frame {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A reader of a stream of events.
pub(crate) struct Sse {
    pub(crate) status: u16,
    pub(crate) head: String,
    lines: BufReader<TcpStream>,
}

impl Sse {
    pub(crate) async fn open(address: &str, path: &str, headers: &[(&str, &str)]) -> Self {
        Self::try_open(address, path, headers)
            .await
            .expect("an answer")
    }

    /// `None` when no server answers.
    pub(crate) async fn try_open(
        address: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Option<Self> {
        let mut stream = TcpStream::connect(address).await.ok()?;
        let headers = [headers, &[("accept", "text/event-stream")]].concat();
        stream
            .write_all(&head(address, "GET", path, &headers))
            .await
            .ok()?;
        let mut lines = BufReader::new(stream);
        let mut text = String::new();
        loop {
            let read = tokio::time::timeout(TIMEOUT, lines.read_line(&mut text))
                .await
                .expect("a head in time");
            if read.ok()? == 0 {
                return None;
            }
            if text.ends_with("\r\n\r\n") {
                break;
            }
        }
        let status = text.split(' ').nth(1).unwrap().parse().unwrap();
        Some(Self {
            status,
            head: text,
            lines,
        })
    }

    /// The next frame, without comments and retry times; `None` at the end of the connection.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        tokio::time::timeout(TIMEOUT, self.read())
            .await
            .expect("a frame or the end in time")
    }

    async fn read(&mut self) -> Option<Frame> {
        let mut frame = Frame::default();
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            match line.trim_end_matches('\n') {
                "" if frame.event.is_empty() => frame = Frame::default(),
                "" => return Some(frame),
                line => match line.split_once(": ") {
                    Some(("id", id)) => frame.id = id.parse().ok(),
                    Some(("event", event)) => frame.event = event.to_owned(),
                    Some(("data", data)) => frame.data.push_str(data),
                    Some(_) | None => {}
                },
            }
        }
    }

    /// The next frame that is no delta.
    pub(crate) async fn next_event(&mut self) -> Option<Frame> {
        loop {
            match self.next().await {
                Some(frame) if frame.event == "delta" => assert_eq!(frame.id, None),
                frame => return frame,
            }
        }
    }
}
