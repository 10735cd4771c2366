//! A provider that fails in a different way on each path, and that repeats the key wherever a provider can.

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::forms::base64;
use super::streams::Api;

/// The behaviours of the provider, by the first part of the path.
pub(super) const FAILURES: [&str; 20] = [
    "wrong-key",
    "bad-request",
    "page-401",
    "forbidden",
    "rate-limited",
    "overloaded",
    "page-502",
    "cut",
    "cut-before-headers",
    "error-in-stream",
    "error-without-frame",
    "malformed-json",
    "malformed-later",
    "bad-signature",
    "blocked-prompt",
    "odd-end",
    "redirect",
    "no-http",
    "encoded-key",
    "silent",
];
/// The provider calls a tool, then refuses its result and repeats the whole request.
pub(super) const REPEATS_RESULT: &str = "repeats-result";

/// Starts the provider and returns its address.
pub(super) async fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move { answer(BufReader::new(stream)).await });
        }
    });
    address
}

struct Request {
    api: Api,
    failure: String,
    key: String,
    body: String,
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let (mut length, mut key, mut target) = (0, String::new(), String::new());
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        if target.is_empty() {
            target.clone_from(&line);
        }
        let (name, value) = line.trim_end().split_once(": ").unwrap_or_default();
        match name.to_lowercase().as_str() {
            "content-length" => length = value.parse().ok()?,
            "x-goog-api-key" | "x-api-key" => value.clone_into(&mut key),
            "authorization" => value.trim_start_matches("Bearer ").clone_into(&mut key),
            _ => {}
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let failure = target.split('/').nth(1)?.to_owned();
    Some(Request {
        api: Api::of(&target),
        failure,
        key,
        body: String::from_utf8(body).ok()?,
    })
}

/// The error of every API in one object.
fn error(code: u16, status: &str, message: &str, key: &str) -> String {
    let details = serde_json::json!([
        {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": status, "metadata": {"key": key}},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.05s"},
    ]);
    let error = serde_json::json!({
        "code": code, "message": message, "status": status, "type": status, "param": key, "details": details,
    });
    serde_json::json!({"type": "error", "error": error, "request_id": key}).to_string()
}

enum End {
    Close,
    Hang,
}

async fn answer(mut stream: BufReader<TcpStream>) -> Option<()> {
    let request = read(&mut stream).await?;
    let (written, end) = response(&request);
    let stream = stream.get_mut();
    stream.write_all(written.as_bytes()).await.ok()?;
    match end {
        End::Hang => std::future::pending().await,
        End::Close => stream.shutdown().await.ok(),
    }
}

fn whole(status: &str, headers: &str, body: &str) -> (String, End) {
    let length = body.len();
    (
        format!(
            "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        ),
        End::Close,
    )
}

/// A stream of events whose end is marked, so that a lost end is noticed.
fn streamed(body: &str, last: &str) -> (String, End) {
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked";
    (
        format!("{head}\r\n\r\n{:x}\r\n{body}\r\n{last}", body.len()),
        End::Close,
    )
}

fn response(request: &Request) -> (String, End) {
    const END: &str = "0\r\n\r\n";
    let Request {
        api,
        failure,
        key,
        body,
    } = request;
    let said = format!("the key {key} of the request x-goog-api-key={key} is refused");
    let failed = |status: &str, word: &str| {
        let code = status[..3].parse().unwrap();
        whole(
            status,
            &format!("server: {key}\r\nx-request-id: {key}\r\n"),
            &error(code, word, &said, key),
        )
    };
    let page = format!("<html><title>{key}</title>https://host/?key={key}</html>");
    match failure.as_str() {
        "wrong-key" => failed("400 Bad Request", "API_KEY_INVALID"),
        "bad-request" => failed("400 Bad Request", "INVALID_ARGUMENT"),
        "page-401" => whole(&format!("401 {key}"), "", &page),
        "forbidden" => failed("403 Forbidden", key),
        "rate-limited" => failed("429 Too Many Requests", "RESOURCE_EXHAUSTED"),
        "overloaded" => failed("503 Service Unavailable", "UNAVAILABLE"),
        "page-502" => whole("502 Bad Gateway", &format!("retry-after: {key}\r\n"), &page),
        "cut" => streamed(&api.words("It is"), ""),
        "cut-before-headers" => (String::new(), End::Close),
        "error-in-stream" => {
            let error = error(500, "INTERNAL", &said, key);
            streamed(
                &format!("{}event: error\ndata: {error}\n\n", api.words("It is")),
                END,
            )
        }
        "error-without-frame" => streamed(
            &format!(
                "{}{}\n",
                api.words("It is"),
                error(500, "INTERNAL", &said, key)
            ),
            END,
        ),
        "malformed-json" => streamed(&format!("data: {{\"candidates\": \"{key}\"\n\n"), END),
        "malformed-later" => streamed(&format!("{}data: {key}\n\n", api.words("It is")), END),
        "bad-signature" => {
            let body = error(
                400,
                "INVALID_ARGUMENT",
                &format!("Invalid thought signature {key}"),
                key,
            );
            whole("400 Bad Request", "", &body)
        }
        "blocked-prompt" => {
            let feedback = serde_json::json!({"blockReason": key, "blockReasonMessage": said});
            streamed(
                &format!(
                    "data: {}\n\n",
                    serde_json::json!({"promptFeedback": feedback})
                ),
                END,
            )
        }
        "odd-end" => streamed(&api.odd_end(key, &said), END),
        "redirect" => whole(
            "302 Found",
            &format!("location: http://127.0.0.1:1/?key={key}\r\n"),
            &page,
        ),
        "no-http" => (format!("{key}\r\n\r\n{key}"), End::Close),
        "encoded-key" => {
            let url: String = key.bytes().map(|byte| format!("%{byte:02X}")).collect();
            let said = format!(
                "the key {} or {url} or {} is refused",
                base64(key.as_bytes()),
                super::forms::url(key)
            );
            whole(
                "400 Bad Request",
                "",
                &error(400, "INVALID_ARGUMENT", &said, key),
            )
        }
        "silent" => (String::new(), End::Hang),
        _ if Api::has_result(body) => whole(
            "400 Bad Request",
            "",
            &error(400, "INVALID_ARGUMENT", &format!("no: {body}"), key),
        ),
        _ => streamed(&api.tool_call(), END),
    }
}
