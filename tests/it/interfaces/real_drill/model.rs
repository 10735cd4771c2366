//! An endpoint of Gemini or of chat completions that plays a model: a function decides each answer from the request.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The answer to a request.
pub(super) enum Reply {
    /// Calls of functions: name without the server, arguments.
    Calls(Vec<(&'static str, Value)>),
    Text(String),
    /// The key is refused.
    Refused,
    /// The request stays without an answer.
    Hang,
}

/// A running endpoint. It ends with the test.
pub(super) struct Model {
    pub(super) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

/// A request of the LLM service.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) head: String,
    pub(super) body: Value,
}

impl Request {
    /// Answers of the model in the conversation.
    pub(super) fn turn(&self) -> usize {
        if let Some(messages) = self.messages() {
            return messages
                .iter()
                .filter(|message| message["role"] == "assistant")
                .count();
        }
        let contents = self.body["contents"].as_array().unwrap();
        let mut roles: Vec<&Value> = contents.iter().map(|content| &content["role"]).collect();
        roles.dedup();
        roles.iter().filter(|role| **role == "model").count()
    }

    /// The number of the event of a function's last result.
    pub(super) fn event(&self, function: &str) -> u32 {
        let text = self
            .results(function)
            .pop()
            .unwrap_or_else(|| panic!("{function} has no result: {:#}", self.body));
        let (_, rest) = text.split_once("[event ").unwrap();
        rest.split_once(']').unwrap().0.parse().unwrap()
    }

    /// The results of a function as JSON texts.
    pub(super) fn results(&self, function: &str) -> Vec<String> {
        if let Some(messages) = self.messages() {
            let calls = messages
                .iter()
                .flat_map(|message| message["tool_calls"].as_array().into_iter().flatten());
            let named = |call: &&Value| {
                call["function"]["name"]
                    .as_str()
                    .is_some_and(|name| name.ends_with(function))
            };
            let ids: Vec<&Value> = calls.filter(named).map(|call| &call["id"]).collect();
            let results = messages.iter().filter(|message| message["role"] == "tool");
            let results = results.filter(|message| ids.contains(&&message["tool_call_id"]));
            return results
                .map(|message| message["content"].to_string())
                .collect();
        }
        let contents = self.body["contents"].as_array().unwrap().iter();
        let parts = contents.flat_map(|content| content["parts"].as_array().unwrap());
        let responses = parts.map(|part| &part["functionResponse"]);
        let named = responses.filter(|response| {
            response["name"]
                .as_str()
                .is_some_and(|name| name.ends_with(function))
        });
        named
            .map(|response| response["response"].to_string())
            .collect()
    }

    /// The conversation of a request for chat completions.
    fn messages(&self) -> Option<&Vec<Value>> {
        self.body["messages"].as_array()
    }
}

impl Model {
    pub(super) async fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (answer, requests) = (Arc::new(answer), Arc::new(Mutex::new(Vec::new())));
        let seen = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, seen) = (Arc::clone(&answer), Arc::clone(&seen));
                tokio::spawn(async move {
                    // The command checks that the server is there, and sends nothing.
                    let Some((request, mut stream)) = read(stream).await else {
                        return;
                    };
                    seen.lock().unwrap().push(request.clone());
                    let Some(text) = event_stream(&request, answer(&request)) else {
                        return std::future::pending().await;
                    };
                    stream.write_all(text.as_bytes()).await.ok();
                });
            }
        });
        Self { url, requests }
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

async fn read(mut stream: TcpStream) -> Option<(Request, TcpStream)> {
    let mut bytes = Vec::new();
    let (head, length) = loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            let lower = head.to_lowercase();
            let length = lower
                .lines()
                .find_map(|line| line.strip_prefix("content-length:"))
                .unwrap()
                .trim();
            break (head.to_owned(), length.parse::<usize>().unwrap());
        }
    };
    let start = head.len() + 4;
    while bytes.len() < start + length {
        stream.read_buf(&mut bytes).await.ok()?;
    }
    let body = serde_json::from_slice(&bytes[start..]).unwrap();
    Some((Request { head, body }, stream))
}

/// The response with its stream of events; `None` if there is none.
fn event_stream(request: &Request, reply: Reply) -> Option<String> {
    let body = match reply {
        Reply::Hang => return None,
        Reply::Refused => {
            let body =
                json!({"error": {"code": 403, "message": "no such key", "status": "PERMISSION_DENIED"}}).to_string();
            let length = body.len();
            let head =
                "HTTP/1.1 403 Forbidden\r\ncontent-type: application/json\r\nconnection: close\r\n";
            return Some(format!("{head}content-length: {length}\r\n\r\n{body}"));
        }
        Reply::Text(text) if request.messages().is_some() => {
            chat(&json!({"content": text}), "stop")
        }
        Reply::Calls(calls) if request.messages().is_some() => {
            let turn = request.turn();
            let call = |(index, (name, args)): (usize, &(&str, Value))| {
                let function =
                    json!({"name": declared(request, name), "arguments": args.to_string()});
                json!({"index": index, "id": format!("call-{turn}-{index}"), "type": "function", "function": function})
            };
            let calls: Vec<Value> = calls.iter().enumerate().map(call).collect();
            chat(&json!({"tool_calls": calls}), "tool_calls")
        }
        Reply::Text(text) => gemini(&[json!({"text": text})]),
        Reply::Calls(calls) => {
            let call = |(name, args): &(&str, Value)| json!({"functionCall": {"name": declared(request, name), "args": args}});
            gemini(&calls.iter().map(call).collect::<Vec<_>>())
        }
    };
    Some(format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    ))
}

fn gemini(parts: &[Value]) -> String {
    let event = json!({
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 1_000, "candidatesTokenCount": 100, "totalTokenCount": 1_100},
    });
    format!("data: {event}\r\n\r\n")
}

fn chat(delta: &Value, finish: &str) -> String {
    let chunk = |choices: Value, usage: Value| {
        json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices,
            "usage": usage})
    };
    let choice = |delta: &Value, finish: Value| json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
    let usage = json!({"prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100});
    let events = [
        chunk(choice(delta, Value::Null), Value::Null),
        chunk(choice(&json!({}), json!(finish)), Value::Null),
        chunk(json!([]), usage),
    ];
    let events: String = events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    format!("{events}data: [DONE]\n\n")
}

/// The name under which the request declares a function; the plain name if it declares none.
fn declared(request: &Request, name: &str) -> String {
    let tools = request.body["tools"].as_array().into_iter().flatten();
    let declarations = tools.flat_map(|tool| match tool["functionDeclarations"].as_array() {
        Some(functions) => functions.iter().collect::<Vec<_>>(),
        None => vec![&tool["function"]],
    });
    let mut names = declarations.filter_map(|function| function["name"].as_str());
    names
        .find(|declared| declared.ends_with(name))
        .unwrap_or(name)
        .to_owned()
}
