//! The answers of the tool server.

use std::io;
use std::sync::Arc;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{Fault, Form, Held, Oddity, Performed, Seen, Shared};

const SESSION: &str = "mcp-session-id";
/// More than a client reads.
const LARGE_BYTES: usize = 17 << 20;

type Answer = Response<Full<Bytes>>;

pub(super) async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> io::Result<Answer> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let name = message["method"].as_str().unwrap_or_default().to_owned();
    let (method, headers) = (head.method.clone(), head.headers.clone());
    let session = headers
        .get(SESSION)
        .map(|id| id.to_str().unwrap().to_owned());
    let seen = Seen {
        method: method.clone(),
        headers,
        message: name.clone(),
        at: std::time::Instant::now(),
    };
    let refused = {
        let mut state = shared.state.lock().unwrap();
        state.seen.push(seen);
        let token = head
            .headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok());
        let wanted = state.token.as_ref().map(|token| format!("Bearer {token}"));
        let unknown = |known: &std::collections::BTreeSet<String>| {
            !session.as_ref().is_some_and(|id| known.contains(id))
        };
        if head.uri.path() == "/old" {
            let answer = Response::builder()
                .status(StatusCode::TEMPORARY_REDIRECT)
                .header(LOCATION, &state.redirect);
            return Ok(answer.body(Full::default()).unwrap());
        }
        if wanted.is_some() && wanted.as_deref() != token {
            Some(StatusCode::UNAUTHORIZED)
        } else if method == Method::DELETE {
            let known = state.sessions.as_mut().zip(session.as_ref());
            Some(if known.is_some_and(|(known, id)| known.remove(id)) {
                StatusCode::NO_CONTENT
            } else {
                StatusCode::NOT_FOUND
            })
        } else if method != Method::POST {
            Some(StatusCode::METHOD_NOT_ALLOWED)
        } else if name != "initialize" && state.sessions.as_ref().is_some_and(unknown) {
            Some(StatusCode::NOT_FOUND)
        } else {
            None
        }
    };
    if method == Method::DELETE && shared.state.lock().unwrap().holds_deletes {
        return std::future::pending().await;
    }
    if let Some(status) = refused {
        return Ok(empty(status));
    }
    match name.as_str() {
        "initialize" => Ok(initialized(&shared, &message)),
        "tools/list" => Ok(result(&shared, &message, json!({"tools": listed(&shared)}))),
        "tools/call" => call(&shared, &message).await,
        "ping" => Ok(result(&shared, &message, json!({}))),
        _ => Ok(empty(match shared.state.lock().unwrap().oddity {
            Some(Oddity::Notification(status)) => StatusCode::from_u16(status).unwrap(),
            Some(
                Oddity::Type(_) | Oddity::ByteOrderMark | Oddity::Events(_) | Oddity::Member(_),
            )
            | None => StatusCode::ACCEPTED,
        })),
    }
}

fn initialized(shared: &Shared, message: &Value) -> Answer {
    let info = json!({
        "protocolVersion": message["params"]["protocolVersion"],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "test", "version": "1"},
    });
    let mut answer = result(shared, message, info);
    let mut state = shared.state.lock().unwrap();
    let id = format!("session-{}", state.seen.len());
    if let Some(sessions) = &mut state.sessions {
        sessions.insert(id.clone());
        answer.headers_mut().insert(SESSION, id.parse().unwrap());
    }
    answer
}

/// The list of tools, perhaps with a member that is none.
fn listed(shared: &Shared) -> Value {
    let mut tools = tools();
    if let (Some(Oddity::Member(member)), Some(tools)) =
        (shared.state.lock().unwrap().oddity, tools.as_array_mut())
    {
        tools.insert(0, serde_json::from_str(member).unwrap());
    }
    tools
}

fn tools() -> Value {
    let tool = |name: &str, read_only: bool| json!({"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": read_only}});
    json!([
        tool("look", true),
        tool("hold_look", true),
        tool("large", true),
        tool("tokens", true),
        tool("log", true),
        tool("restart", false),
        tool("hold_restart", false)
    ])
}

async fn call(shared: &Shared, message: &Value) -> io::Result<Answer> {
    let tool = message["params"]["name"].as_str().unwrap().to_owned();
    let fault = shared.state.lock().unwrap().faults.pop_front();
    match fault {
        Some(Fault::Status(status)) => return Ok(empty(StatusCode::from_u16(status).unwrap())),
        Some(Fault::Refusal(status, text)) => {
            let mut refusal = body("application/json", text.to_owned());
            *refusal.status_mut() = StatusCode::from_u16(status).unwrap();
            return Ok(refusal);
        }
        Some(Fault::Garbage | Fault::Close) | None => {}
    }
    let performed = Performed {
        tool: tool.clone(),
        arguments: message["params"]["arguments"].clone(),
    };
    shared.state.lock().unwrap().performed.push(performed);
    match fault {
        Some(Fault::Garbage) => return Ok(body("application/json", "oops".to_owned())),
        Some(Fault::Close) => return Err(io::Error::other("the test closes the connection")),
        Some(Fault::Status(_) | Fault::Refusal(..)) | None => {}
    }
    if tool.starts_with("hold_") {
        let (answer, released) = oneshot::channel();
        shared
            .holds
            .send(Held {
                tool: tool.clone(),
                answer,
            })
            .unwrap();
        released.await.ok();
    }
    let text = match tool.as_str() {
        "large" => "x".repeat(LARGE_BYTES),
        "tokens" => format!("seen: {}", tokens(shared)),
        "log" => log(&message["params"]["arguments"]),
        _ => "done".to_owned(),
    };
    Ok(result(
        shared,
        message,
        json!({"content": [{"type": "text", "text": text}]}),
    ))
}

/// Lines of a log, as many bytes as `bytes` asks for, with numbers that depend on `from`.
fn log(arguments: &Value) -> String {
    let number = |key: &str| usize::try_from(arguments[key].as_u64().unwrap_or_default()).unwrap();
    let mut text = String::new();
    for line in number("from") * 1000.. {
        if text.len() >= number("bytes") {
            break;
        }
        let (id, ms) = (line.wrapping_mul(0x9e37_79b9_7f4a_7c15), line * 7919 % 1000);
        text.push_str(&format!(
            "2026-03-01T14:{:02}:{:02}.{ms:03}Z ERROR checkout-7d9f8b6c5-x2x9p request {id:016x} failed after {ms} ms: \
             connection to 10.0.3.{}:5432 refused\n",
            line / 60 % 60,
            line % 60,
            line % 250,
        ));
    }
    text
}

/// The tokens that clients sent, one after the other.
fn tokens(shared: &Shared) -> String {
    let state = shared.state.lock().unwrap();
    let sent = state
        .seen
        .iter()
        .filter_map(|seen| seen.headers.get(AUTHORIZATION)?.to_str().ok());
    let distinct: std::collections::BTreeSet<&str> = sent
        .filter_map(|value| value.strip_prefix("Bearer "))
        .collect();
    distinct.into_iter().collect::<Vec<_>>().join(" and ")
}

fn result(shared: &Shared, message: &Value, result: Value) -> Answer {
    let text = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
    let state = shared.state.lock().unwrap();
    match (state.form, state.oddity) {
        (Form::Json, Some(Oddity::Type(""))) => Response::new(Full::from(text)),
        (Form::Json, Some(Oddity::Type(media_type))) => body(media_type, text),
        (Form::Json, Some(Oddity::ByteOrderMark)) => {
            body("application/json", format!("\u{feff}{text}"))
        }
        (
            Form::Json,
            Some(Oddity::Events(_) | Oddity::Notification(_) | Oddity::Member(_)) | None,
        ) => body("application/json", text),
        (Form::Events, oddity) => {
            let first = if let Some(Oddity::Events(events)) = oddity {
                events
            } else {
                ": hello\n\n"
            };
            body(
                "text/event-stream; charset=utf-8",
                format!("{first}event: message\ndata: {text}\n\n"),
            )
        }
    }
}

fn body(media_type: &str, text: String) -> Answer {
    Response::builder()
        .header(CONTENT_TYPE, media_type)
        .body(Full::from(text))
        .unwrap()
}

fn empty(status: StatusCode) -> Answer {
    Response::builder()
        .status(status)
        .body(Full::default())
        .unwrap()
}
