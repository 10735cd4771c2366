//! Answers as the bytes of an HTTP response.

use fastrand::Rng;
use serde_json::{Value, json};

use super::shapes::Shape;
use super::{GUESSED, LOOK, OddCall, RESTART, SERVER, WHOLE};

/// The bytes of a response, and what follows them.
#[derive(Clone, Debug)]
pub(super) struct Response {
    pub(super) bytes: Vec<u8>,
    /// The connection stays open until the client leaves.
    pub(super) stays_open: bool,
}

/// The place of an answer in a conversation.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The alert.
    pub(super) about: String,
    /// Answers before it.
    pub(super) turn: usize,
    /// The model writes its calls as text.
    pub(super) writes_calls: bool,
}

impl Place {
    /// The whole calls of an answer in this place.
    pub(super) fn calls(&self, rng: &mut Rng) -> Vec<OddCall> {
        let count = if self.writes_calls {
            1
        } else {
            rng.usize(1..4)
        };
        let call = |number: usize| {
            let tool = if rng.u8(0..3) == 0 { RESTART } else { LOOK };
            let step = i64::try_from(self.turn * 10 + number).unwrap();
            OddCall {
                tool: tool.to_owned(),
                by: self.about.clone(),
                step,
            }
        };
        (1..=count).map(call).collect()
    }

    fn text(&self, text: &str) -> String {
        if self.writes_calls {
            format!("Thought: enough\nFinal Answer: {text}")
        } else {
            text.to_owned()
        }
    }

    fn whole(&self) -> String {
        self.text(&format!(
            "Cause: odd \u{1f980} run of {}. Evidence: none. {WHOLE}",
            self.about
        ))
    }

    fn half(&self) -> String {
        self.text(&format!("Cause: perhaps \u{1f980} the {GUESSED}"))
    }
}

fn guessed() -> OddCall {
    OddCall {
        tool: RESTART.to_owned(),
        by: GUESSED.to_owned(),
        step: 1,
    }
}

fn head(kind: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n")
}

fn event(body: &Value) -> String {
    format!("data: {body}\n\n")
}

fn part(delta: &Value) -> String {
    event(
        &json!({"id": "c-1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}),
    )
}

fn end(reason: &str) -> String {
    let usage = json!({"prompt_tokens": 90, "completion_tokens": 9, "total_tokens": 99});
    let last = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
    format!(
        "{}{}data: [DONE]\n\n",
        event(&last),
        event(&json!({"choices": [], "usage": usage}))
    )
}

fn says(text: &str, reason: &str) -> String {
    format!(
        "{}{}",
        part(&json!({"role": "assistant", "content": text})),
        end(reason)
    )
}

/// Calls in one of the ways in which servers stream them.
fn pieces(calls: &[OddCall], rng: &mut Rng) -> String {
    let way = rng.u8(0..5);
    let mut stream = String::new();
    for (at, call) in calls.iter().enumerate() {
        let (index, arguments) = (if way == 2 { 0 } else { at }, call.arguments().to_string());
        let name = format!("{SERVER}__{}", call.tool);
        let id = |piece: usize| match way {
            3 => json!(format!("call-{at}-{piece}")),
            4 => Value::Null,
            _ => json!(format!("call-{at}")),
        };
        let piece = |number: usize, function: Value| {
            part(
                &json!({"tool_calls": [{"index": index, "id": id(number), "type": "function", "function": function}]}),
            )
        };
        if way == 0 {
            stream.push_str(&piece(0, json!({"name": name, "arguments": arguments})));
            continue;
        }
        stream.push_str(&piece(0, json!({"name": name, "arguments": ""})));
        let mut rest = arguments.as_str();
        let mut number = 1;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rng.usize(1..9).min(rest.len()));
            stream.push_str(&piece(number, json!({"arguments": now})));
            (rest, number) = (later, number + 1);
        }
    }
    stream
}

fn written(call: &OddCall) -> String {
    format!(
        "Thought: look\nAction: {SERVER}.{}\nAction Input: {}",
        call.tool,
        call.arguments()
    )
}

fn markup(rng: &mut Rng) -> String {
    let (name, arguments) = (format!("{SERVER}__{RESTART}"), guessed().arguments());
    match rng.u8(0..3) {
        0 => format!(
            "<tool_call>\n{}\n</tool_call>",
            json!({"name": name, "arguments": arguments})
        ),
        1 => format!(
            "[TOOL_CALLS]{}",
            json!([{"name": name, "arguments": arguments}])
        ),
        _ => format!("<function={name}>{arguments}</function>"),
    }
}

fn refusal(rng: &mut Rng) -> String {
    let json = |status: &str, body: Value| {
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{body}"
        )
    };
    match rng.u8(0..5) {
        0 => json("429 x\r\nretry-after: 0", json!({"error": {"message": "Rate limit reached"}})),
        1 => json("500 x", json!({"error": "CUDA error: device-side assert triggered"})),
        2 => json("503 x", json!({"detail": "overloaded"})),
        3 => {
            "HTTP/1.1 502 x\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<html>Bad Gateway</html>".to_owned()
        }
        _ => json("200 OK", json!({"error": {"message": "Service is too busy", "code": 503}})),
    }
}

/// The answer of this shape; `calls` are those of [`Shape::Calls`].
pub(super) fn response(shape: Shape, place: &Place, calls: &[OddCall], rng: &mut Rng) -> Response {
    let cut_call = || {
        let whole = pieces(&[guessed()], &mut Rng::with_seed(0));
        whole
            .split_inclusive("\n\n")
            .next()
            .unwrap_or_default()
            .replace("\\\"step\\\":1}", "")
    };
    let stream = match shape {
        Shape::Calls if place.writes_calls => {
            says(&calls.iter().map(written).collect::<String>(), "stop")
        }
        Shape::Calls => format!(
            "{}{}",
            pieces(calls, rng),
            end(if rng.bool() { "tool_calls" } else { "stop" })
        ),
        Shape::Final => says(&place.whole(), "stop"),
        Shape::DoneOnly => format!(
            "{}data: [DONE]\n\n",
            part(&json!({"content": place.whole()}))
        ),
        Shape::PlainBody => {
            let message = json!({"role": "assistant", "content": place.whole()});
            let body =
                json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]});
            return Response {
                bytes: format!("{}{body}", head("application/json")).into_bytes(),
                stays_open: false,
            };
        }
        Shape::CutCall if place.writes_calls => {
            says(&written(&guessed()).replace(",\"step\":1}", ""), "length")
        }
        Shape::CutCall => format!("{}{}", cut_call(), end("length")),
        Shape::CutBehindCall if place.writes_calls => says(&written(&guessed()), "length"),
        Shape::CutBehindCall => format!("{}{}", pieces(&[guessed()], rng), end("length")),
        Shape::CutText => says(&place.half(), "length"),
        Shape::Filtered => says(&place.half(), "content_filter"),
        Shape::BareEnd | Shape::Stall => part(&json!({"content": place.half()})),
        Shape::ThinksAloud => {
            let open = if rng.bool() { "<think>" } else { "" };
            says(
                &format!(
                    "{open}{GUESSED}: {} or so</think>\n\n{}",
                    markup(rng),
                    place.whole()
                ),
                "stop",
            )
        }
        Shape::ThinksOn => says(&format!("<think>{GUESSED}: {}", place.half()), "stop"),
        Shape::CallInText => says(&format!("I restart it.\n{}", markup(rng)), "stop"),
        Shape::Promise => says(&format!("I will look at the pods now. {WHOLE}"), "stop"),
        Shape::Invisible => says("\u{200b}\u{2060}", "stop"),
        Shape::Stray => {
            let function = json!({"arguments": guessed().arguments().to_string()});
            format!(
                "{}{}",
                part(&json!({"tool_calls": [{"index": 3, "function": function}]})),
                end("tool_calls")
            )
        }
        Shape::ErrorInStream => {
            let error = json!({"error": {"message": "the engine process has died", "code": 500}});
            format!(
                "{}{}",
                part(&json!({"content": place.half()})),
                event(&error)
            )
        }
        Shape::Refusal => {
            return Response {
                bytes: refusal(rng).into_bytes(),
                stays_open: false,
            };
        }
    };
    let kind = if rng.bool() {
        "text/event-stream"
    } else {
        "text/event-stream; charset=utf-8"
    };
    let noise = [": OPENROUTER PROCESSING\n\n", "\u{feff}", "", ""][rng.usize(0..4)];
    Response {
        bytes: format!("{}{noise}{stream}", head(kind)).into_bytes(),
        stays_open: shape == Shape::Stall,
    }
}
