//! An MCP server over HTTP with one tool, which answers at once.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const TOOL: &str = "pods_list";
/// The result of each call.
pub(crate) const TEXT: &str = "\
NAMESPACE  NAME                       READY  STATUS            RESTARTS  AGE
checkout   checkout-7d9f8b6c5-x2x9p   0/1    CrashLoopBackOff  14        61m
checkout   checkout-7d9f8b6c5-q8k2m   1/1    Running           0         6d";

/// Starts the server; returns its URL. It ends with this program.
pub(crate) async fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(connection(stream));
        }
    });
    format!("http://{address}/mcp")
}

/// Answers the requests of one connection, until the client closes it.
async fn connection(stream: TcpStream) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut stream = BufReader::new(stream);
    loop {
        let (is_post, body) = request(&mut stream).await?;
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        let answer = match (is_post, message.get("id"), message["method"].as_str()) {
            (false, _, _) => {
                "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n".to_owned()
            }
            (true, Some(id), Some(method)) => answer(id, result(method)),
            (true, _, _) => "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_owned(),
        };
        stream.get_mut().write_all(answer.as_bytes()).await.ok()?;
    }
}

/// Whether the next request is a POST, and its body.
async fn request(stream: &mut BufReader<TcpStream>) -> Option<(bool, Vec<u8>)> {
    let (mut length, mut is_post) = (0, false);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        is_post |= line.starts_with("POST ");
        match line.trim_end().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().ok()?
            }
            None if line == "\r\n" => break,
            Some(_) | None => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some((is_post, body))
}

fn result(method: &str) -> Value {
    match method {
        "initialize" => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "bench", "version": "1"}}),
        "tools/list" => json!({"tools": [{"name": TOOL, "description": "Lists pods.",
            "annotations": {"readOnlyHint": true},
            "inputSchema": {"type": "object", "required": ["number"], "additionalProperties": false,
                "properties": {"number": {"type": "integer", "minimum": 0}, "namespace": {"type": "string"}}}}]}),
        "tools/call" => json!({"content": [{"type": "text", "text": TEXT}]}),
        _ => json!({}),
    }
}

fn answer(id: &Value, result: Value) -> String {
    let body = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    let session = "mcp-session-id: one\r\ncontent-type: application/json\r\n";
    format!(
        "HTTP/1.1 200 OK\r\n{session}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}
