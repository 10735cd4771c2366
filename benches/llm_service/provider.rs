//! A provider of models on loopback. Each chunk of its answers has the time at which it was written.

use std::net::SocketAddr;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::clock;
use crate::script::Script;

/// Chunks that are written at once when there is no pause between them.
const BATCH: u32 = 64;
const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const LAST: &str = "0\r\n\r\n";

/// The provider; it ends with this program.
pub(crate) struct Provider {
    pub(crate) address: SocketAddr,
}

impl Provider {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(connection(stream));
            }
        });
        Self { address }
    }
}

/// Answers the requests of one connection, until the service closes it.
async fn connection(stream: TcpStream) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut stream = BufReader::new(stream);
    loop {
        let body = body(&mut stream).await?;
        let script =
            Script::find(&body).unwrap_or_else(|| panic!("a request without a script: {body}"));
        answer(stream.get_mut(), script).await?;
    }
}

/// The body of the next request.
async fn body(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        match line.trim_end().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().ok()?
            }
            Some(_) => {}
            None if line == "\r\n" => break,
            None => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    String::from_utf8(body).ok()
}

async fn answer(stream: &mut TcpStream, script: Script) -> Option<()> {
    // A model thinks before it answers.
    tokio::time::sleep(script.delay).await;
    let mut left = script.chunks;
    let mut head = HEAD;
    while left > 0 {
        let batch = if script.pause.is_zero() {
            left.min(BATCH)
        } else {
            1
        };
        let written = format!("{head}{}", chunked(&event().repeat(batch as usize)));
        stream.write_all(written.as_bytes()).await.ok()?;
        head = "";
        left -= batch;
        if left > 0 {
            // A model needs time for each chunk.
            tokio::time::sleep(script.pause).await;
        }
    }
    let end = r#"{"candidates":[{"content":{"parts":[{"text":"."}],"role":"model"},"finishReason":"STOP"}]}"#;
    stream
        .write_all(format!("{}{LAST}", chunked(&format!("data: {end}\r\n\r\n"))).as_bytes())
        .await
        .ok()
}

/// A chunk of text as Gemini sends it. The text is the time in nanoseconds.
fn event() -> String {
    let text = format!("{:016} ", clock().as_nanos());
    format!(
        r#"data: {{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}],"role":"model"}},"index":0}}]}}"#
    ) + "\r\n\r\n"
}

fn chunked(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}
