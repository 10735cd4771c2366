//! The events of an answer in the form that their interface documents.
//!
//! An error of the provider ends the stream, wherever it occurs. A whole answer becomes the events that it would have
//! been. Everything else stays as it is.

mod whole;

use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::service::genai::target::Api;
use crate::service::provider::fields::{kind, text};
use crate::service::provider::repair::{self, Repair};

const DONE: &str = "[DONE]";
/// The pointers to the token counts of an answer.
const USAGES: [&str; 4] = [
    "/usage",
    "/message/usage",
    "/response/usage",
    "/x_groq/usage",
];

/// The state of a stream.
#[derive(Debug)]
pub(super) struct Normal {
    api: Api,
    repair: Repair,
    /// Whether a piece of the answer has come.
    has_begun: bool,
}

impl Normal {
    pub(super) fn new(api: Api) -> Self {
        Self {
            api,
            repair: Repair::default(),
            has_begun: false,
        }
    }

    /// The lines of an event for the crate.
    ///
    /// # Errors
    /// The provider's own description of its failure.
    pub(super) fn event(&mut self, event: &str) -> Result<String, Value> {
        let text = event.trim();
        if text.is_empty() || text == DONE {
            return Ok(lines(None, text));
        }
        let text = self.repair.event(text);
        match serde_json::from_str::<Value>(&text) {
            Ok(value) => self.value(value),
            Err(_not_json) if is_list(&text) => text.lines().map(|line| self.event(line)).collect(),
            // The crate reports that it cannot read the event.
            Err(_not_json) => Ok(lines(self.name_of_unreadable(event), &text)),
        }
    }

    /// The lines of an answer that is one JSON value, which may be an error.
    ///
    /// # Errors
    /// As [`Normal::event`].
    pub(super) fn whole(&mut self, body: &str) -> Result<Vec<u8>, Value> {
        let body = body.trim_start_matches('\u{FEFF}').trim();
        self.event(&repair::whole(body)).map(String::into_bytes)
    }

    fn value(&mut self, mut value: Value) -> Result<String, Value> {
        if let Some(failure) = failure(self.api, &value) {
            return Err(failure);
        }
        if let Some(map) = value.as_object_mut() {
            map.remove("error");
        }
        for usage in USAGES {
            if let Some(usage) = value.pointer_mut(usage) {
                whole_numbers(usage);
            }
        }
        let events = match self.api {
            Api::Chat if self.has_begun => vec![value],
            Api::Chat => whole::chat(value),
            Api::Messages => whole::message(value),
            Api::Responses => whole::response(value),
            Api::Ollama | Api::Converse => vec![value],
        };
        self.has_begun = true;
        Ok(events.iter().map(|event| self.written(event)).collect())
    }

    fn written(&self, event: &Value) -> String {
        match event.as_str() {
            Some(mark) => lines(None, mark),
            None => lines(self.name_of(event), &event.to_string()),
        }
    }

    /// Events of chat completions have no name.
    fn name_of<'a>(&self, event: &'a Value) -> Option<&'a str> {
        let kind = event.get("type").and_then(Value::as_str)?;
        (self.api != Api::Chat).then_some(kind)
    }

    /// The name of an event that cannot be read.
    fn name_of_unreadable(&self, event: &str) -> Option<&'static str> {
        const NAMES: [&str; 3] = [
            "content_block_delta",
            "content_block_start",
            "message_delta",
        ];
        let named = NAMES
            .into_iter()
            .find(|name| event.contains(name))
            .unwrap_or("content_block_start");
        (self.api == Api::Messages).then_some(named)
    }
}

/// Whether a text is several events, one on each line: their server wrote no empty lines between them.
fn is_list(text: &str) -> bool {
    text.trim().contains('\n')
        && text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .all(|line| line.trim() == DONE || serde_json::from_str::<IgnoredAny>(line).is_ok())
}

/// An event as lines. The crate selects those of Anthropic by their name.
fn lines(name: Option<&str>, data: &str) -> String {
    let name = name
        .map(|name| format!("event: {name}\n"))
        .unwrap_or_default();
    let data: String = data.lines().map(|line| format!("data: {line}\n")).collect();
    format!("{name}{data}\n")
}

/// The provider's error, if the event is one.
fn failure(api: Api, event: &Value) -> Option<Value> {
    if let Value::Array(list) = event {
        return list.first().and_then(|first| failure(api, first));
    }
    let kind = kind(event);
    let has_failed = kind == "response.failed" || text(event, "status") == "failed";
    if api == Api::Responses && has_failed {
        let error = event
            .pointer("/response/error")
            .or_else(|| event.get("error"));
        let error = error.filter(|error| error.is_object());
        return Some(error.cloned().unwrap_or_else(|| json!({})));
    }
    let is_error = kind == "error" || text(event, "object") == "error";
    if is_error || event.get("error").is_some_and(is_said) {
        return Some(event.clone());
    }
    if let Some(error) = event
        .pointer("/choices/0/error")
        .filter(|error| is_said(error))
    {
        return Some(error.clone());
    }
    // An answer that has no part of one, but words.
    let is_answer = ["choices", "type", "object", "usage"]
        .iter()
        .any(|name| event.get(name).is_some_and(|value| !value.is_null()));
    (!is_answer && has_words(event)).then(|| event.clone())
}

/// Whether an event that is no part of an answer has the words or the code of a failure.
fn has_words(event: &Value) -> bool {
    let in_status = event
        .pointer("/base_resp/status_code")
        .is_some_and(is_failure);
    let in_word = event.get("success") == Some(&Value::Bool(false));
    let mut fields = event.as_object().into_iter().flatten();
    in_status || in_word || fields.any(|(name, value)| is_about_failure(name) && is_failure(value))
}

/// Whether a field with this name is about a failure.
fn is_about_failure(name: &str) -> bool {
    matches!(name, "message" | "detail" | "msg" | "errors" | "Message")
        || name.to_ascii_lowercase().starts_with("err")
}

/// Whether a field has an error, and not the code of a success.
fn is_failure(value: &Value) -> bool {
    let word = value.as_str().unwrap_or_default().to_ascii_lowercase();
    is_said(value) && !matches!(word.as_str(), "0" | "ok" | "success")
}

/// Whether an error is one: gateways send `null`, `false`, `""` and `{}` with each event.
fn is_said(error: &Value) -> bool {
    match error {
        Value::Null => false,
        Value::Bool(is_error) => *is_error,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => map.values().any(|value| !value.is_null()),
    }
}

/// `5.0` as `5`.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Object(map) => map.values_mut().for_each(whole_numbers),
        Value::Array(list) => list.iter_mut().for_each(whole_numbers),
        Value::Number(number) if number.is_f64() => {
            let whole = format!("{:.0}", number.as_f64().unwrap_or_default());
            *value = whole.parse::<i64>().map_or(Value::Null, Value::from);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(api: Api, event: &str) -> String {
        match Normal::new(api).event(event) {
            Ok(lines) => lines,
            Err(failure) => format!("failure {failure}"),
        }
    }

    #[test]
    fn an_error_is_found_wherever_it_stands_and_nothing_else_is_one() {
        for event in [
            r#"{"error":{"code":502,"message":"x"},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}"#,
            r#"{"error":"x"}"#,
            r#"[{"error":{"message":"x"}}]"#,
            r#"{"choices":[{"error":{"message":"x"},"delta":{}}]}"#,
            r#"{"object":"error","message":"x","code":400}"#,
            r#"{"code":"Throttling","message":"x"}"#,
            r#"{"detail":"x"}"#,
            r#"{"errorCode":500,"errorMessage":"x"}"#,
            r#"{"success":false,"reason":"x"}"#,
            r#"{"id":"a","choices":null,"base_resp":{"status_code":1013,"status_msg":"x"}}"#,
        ] {
            assert!(shown(Api::Chat, event).starts_with("failure "), "{event}");
        }
        for error in [
            "null",
            "false",
            "\"\"",
            "{}",
            "[]",
            "0",
            r#"{"message":null}"#,
        ] {
            let event = format!(r#"{{"error":{error},"choices":[{{"delta":{{"content":"a"}}}}]}}"#);
            assert_eq!(
                shown(Api::Chat, &event),
                "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
            );
        }
        for harmless in [
            r#"{"id":"a","choices":null,"base_resp":{"status_code":0}}"#,
            r#"{"errorCode":"0"}"#,
            "{}",
        ] {
            assert!(
                !shown(Api::Chat, harmless).starts_with("failure"),
                "{harmless}"
            );
        }
        let failed = r#"{"type":"response.failed","response":{"error":{"code":"server_error","message":"x"}}}"#;
        assert_eq!(
            shown(Api::Responses, failed),
            r#"failure {"code":"server_error","message":"x"}"#
        );
        assert_eq!(shown(Api::Chat, DONE), "data: [DONE]\n\n");
    }

    #[test]
    fn a_whole_answer_becomes_events_and_tokens_become_whole_numbers() {
        let answer = concat!(
            r#"{"object":"chat.completion","choices":[{"message":{"role":"assistant","content":"a","tool_calls":"#,
            r#"[{"id":"1","function":{"name":"n","arguments":"{}"}}]}}],"usage":{"prompt_tokens":5.0}}"#
        );
        let events = shown(Api::Chat, answer);
        for part in [
            r#""delta":{"#,
            r#""index":0"#,
            r#""finish_reason":"tool_calls""#,
            r#""prompt_tokens":5}"#,
        ] {
            assert!(events.contains(part), "{part}: {events}");
        }
        assert!(events.ends_with("data: [DONE]\n\n"), "{events}");
        let message = concat!(
            r#"{"type":"message","id":"m","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn","#,
            r#""usage":{"input_tokens":1,"output_tokens":2}}"#
        );
        let events = shown(Api::Messages, message);
        let names: Vec<_> = events
            .lines()
            .filter_map(|line| line.strip_prefix("event: "))
            .collect();
        let expected = [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
        ];
        assert_eq!(names, expected, "{events}");
    }

    #[test]
    fn a_text_at_the_start_of_a_block_is_its_first_piece() {
        let start = r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"a"}}"#;
        let expected = concat!(
            "event: content_block_start\n",
            r#"data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
            "\n\nevent: content_block_delta\n",
            r#"data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a"}}"#,
            "\n\n"
        );
        assert_eq!(shown(Api::Messages, start), expected);
    }
}
