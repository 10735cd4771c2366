//! A minimal HTTP client. Requests are written out, because their bytes are part of the tests.

pub(crate) mod endpoint;
pub(crate) mod pages;
pub(crate) mod provider;

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const TIMEOUT: Duration = Duration::from_secs(180);

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// The value of a header, by its lower-case name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self
            .head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(": "));
        lines
            .filter(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
            .next()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

pub(crate) async fn get(address: &str, path: &str) -> Answer {
    send(address, &head("GET", path, &[], None)).await
}

/// Like [`get`]; `None` when no server listens or the connection ends without an answer.
pub(crate) async fn try_get(address: &str, path: &str) -> Option<Answer> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    stream.write_all(&head("GET", path, &[], None)).await.ok()?;
    read(&mut stream).await
}

pub(crate) async fn post(
    address: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    send(
        address,
        &[head("POST", path, headers, Some(body.len())), body.to_vec()].concat(),
    )
    .await
}

/// A request up to its body.
pub(crate) fn head(
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    length: Option<usize>,
) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: tarsy\r\nconnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(length) = length {
        text.push_str(&format!("content-length: {length}\r\n"));
    }
    (text + "\r\n").into_bytes()
}

/// Sends these bytes and reads to the end of the connection.
pub(crate) async fn send(address: &str, bytes: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The server may close a refused connection before the whole request is sent.
    stream.write_all(bytes).await.ok();
    read(&mut stream).await.expect("an answer")
}

/// The answer; `None` when the connection ended without one.
pub(crate) async fn read(stream: &mut TcpStream) -> Option<Answer> {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut bytes))
        .await
        .expect("an end");
    // A reset after the answer comes from the unread part of the request.
    if bytes.is_empty() {
        return None;
    }
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("{read:?}: {text}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Some(Answer {
        status,
        head: head.to_owned(),
        body: body.to_owned(),
    })
}
