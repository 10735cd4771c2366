//! Reads a message with small errors against JSON-RPC, and corrects it.
//!
//! A message that can mean only one thing is accepted: one with a result and an error that is `null`, an answer without
//! an id while one request is open, or one after a line of a log. A message that cannot be read, and that answers an
//! open request, becomes an error of this request with the words of the server: the call would wait for its time-out
//! otherwise.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::initialize;
use super::open::OpenRequests;
use super::repair;
use super::skipped::SkippedMessage;
use tarsy_core::visible::visible;

/// The code of our error in the place of an answer that cannot be read. Whether the tool did its work is unknown.
pub(in crate::client) const UNREADABLE: i32 = -32_768;
/// The code of an error whose server gave none.
const NO_CODE: i32 = -32_000;
/// The number of positions at which a message is looked for in a line that begins with other text.
const MAX_BEGINNINGS: usize = 16;
/// A longer text of a server is cut.
const MAX_WORDS_CHARS: usize = 300;

/// The outer members of a message.
#[derive(Debug, Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// A member that is there, also when it is `null`.
fn present<'de: 'a, 'a, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Envelope<'_> {
    /// Whether it is a request or a notification of the server. Some answers have a `method` that is `null`.
    fn is_request(&self) -> bool {
        self.method.is_some_and(|method| method.get() != "null")
    }

    fn is_message(&self) -> bool {
        let has_content = self.is_request() || self.result.is_some() || self.error.is_some();
        has_content && (self.jsonrpc.is_some() || self.id.is_some())
    }
}

/// The message of one line, event or body; `None` if there is none.
pub(super) fn parse<'a>(bytes: &'a [u8], open: &OpenRequests) -> Option<Cow<'a, [u8]>> {
    if bytes.trim_ascii().is_empty() {
        return None;
    }
    let text = repair::text(bytes);
    let is_clean = matches!(text, Cow::Borrowed(_)) && !repair::may_have_half_character(&text);
    // The members of an envelope are skipped and not read: numbers without end and nesting without end are found here.
    if is_clean
        && is_object(&text)
        && let Ok(envelope) = serde_json::from_str::<Envelope<'_>>(&text)
        && is_json(bytes)
    {
        return Some(match written(&envelope, open) {
            Some(message) => Cow::Owned(message),
            None => Cow::Borrowed(bytes),
        });
    }
    let repaired = repair::repaired(&text);
    found(&repaired, open)
        .or_else(|| unreadable(bytes, open))
        .map(Cow::Owned)
}

/// A list would be read as the members of an envelope, in their order.
fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<Value>(bytes).is_ok()
}

/// The first message in a text. A log may have written before it or after it, on the same line.
fn found(text: &str, open: &OpenRequests) -> Option<Vec<u8>> {
    if let Some(answer) = in_batch(text, open) {
        return Some(answer);
    }
    let beginnings = text
        .match_indices('{')
        .map(|(at, _)| at)
        .take(MAX_BEGINNINGS);
    beginnings.into_iter().find_map(|at| {
        let rest = text.get(at..)?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Envelope<'_>>();
        let envelope = values.next()?.ok().filter(Envelope::is_message)?;
        let message = rest
            .get(..values.byte_offset())
            .filter(|message| is_json(message.as_bytes()))?;
        Some(written(&envelope, open).unwrap_or_else(|| message.as_bytes().to_vec()))
    })
}

/// The answer to an open request in a list of messages, which some versions of the protocol allow.
fn in_batch(text: &str, open: &OpenRequests) -> Option<Vec<u8>> {
    let batch: Vec<&RawValue> = serde_json::from_str(text.trim()).ok()?;
    batch.into_iter().find_map(|raw| {
        let envelope: Envelope<'_> = serde_json::from_str(raw.get()).ok()?;
        let is_answer = !envelope.is_request() && envelope.is_message() && is_object(raw.get());
        let is_open = envelope
            .id
            .is_some_and(|id| open.has(id.get().trim_matches('"')));
        if !is_answer || !is_open {
            return None;
        }
        Some(written(&envelope, open).unwrap_or_else(|| raw.get().as_bytes().to_vec()))
    })
}

/// A message of the server in the form of JSON-RPC; `None` if it has this form.
fn written(envelope: &Envelope<'_>, open: &OpenRequests) -> Option<Vec<u8>> {
    if envelope.is_request() {
        return None;
    }
    let is_null = |value: &&RawValue| value.get() == "null";
    let given = envelope.id.filter(|id| !is_null(id));
    let error = envelope.error.filter(|error| !is_null(error));
    let is_empty = envelope.result.is_none() && error.is_none();
    let id = match given {
        Some(id) if is_empty && !open.has(id.get().trim_matches('"')) => return None,
        Some(id) => id.get().to_owned(),
        None if is_empty => return None,
        None => id_as_json(&open.single()?),
    };
    open.answered(id.trim_matches('"'));
    let error = match (envelope.result, error) {
        (None, None) => Some(
            json!({"code": UNREADABLE, "message": "the answer has neither a result nor an error"}),
        ),
        (Some(result), Some(error)) if is_null(&result) => Some(error_of(error)),
        (Some(_), _) => None,
        (None, Some(error)) => Some(error_of(error)),
    };
    let mended = match (&error, envelope.result) {
        (None, Some(result)) => initialize::mended(result),
        (Some(_), _) | (None, None) => None,
    };
    let is_as_it_should_be = given.is_some()
        && mended.is_none()
        && envelope.method.is_none()
        && envelope
            .jsonrpc
            .is_some_and(|version| version.get() == "\"2.0\"")
        && match (envelope.result, envelope.error) {
            (Some(_), None) => true,
            (None, Some(raw)) => error.as_ref().is_some_and(|error| is_same(raw, error)),
            (Some(_), Some(_)) | (None, None) => false,
        };
    if is_as_it_should_be {
        return None;
    }
    let content = match (error, envelope.result) {
        (Some(error), _) => format!(r#""error":{error}"#),
        (None, result) => match mended {
            Some(mended) => format!(r#""result":{mended}"#),
            None => format!(r#""result":{}"#, result.map_or("null", RawValue::get)),
        },
    };
    Some(format!(r#"{{"jsonrpc":"2.0","id":{id},{content}}}"#).into_bytes())
}

fn is_same(raw: &RawValue, value: &Value) -> bool {
    serde_json::from_str::<Value>(raw.get()).is_ok_and(|raw| raw == *value)
}

/// An error with a code and a message, whatever the server wrote in its place.
fn error_of(raw: &RawValue) -> Value {
    let mut value: Value = serde_json::from_str(raw.get()).unwrap_or(Value::Null);
    let Value::Object(members) = &mut value else {
        let words = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        return json!({"code": NO_CODE, "message": words});
    };
    let code = members
        .get("code")
        .and_then(Value::as_i64)
        .filter(|code| i32::try_from(*code).is_ok());
    let has_message = members.get("message").is_some_and(Value::is_string);
    if code.is_some() && has_message {
        return value;
    }
    let words = match members.get("message").and_then(Value::as_str) {
        Some(message) => message.to_owned(),
        None => Value::Object(members.clone()).to_string(),
    };
    let mut error = json!({"code": code.unwrap_or_else(|| i64::from(NO_CODE)), "message": words});
    if let (Some(data), Value::Object(error)) = (members.remove("data"), &mut error) {
        error.insert("data".to_owned(), data);
    }
    error
}

/// The error that takes the place of a message that cannot be read; `None` if it answers no open request.
fn unreadable(bytes: &[u8], open: &OpenRequests) -> Option<Vec<u8>> {
    let words = words(bytes);
    let Some(id) = SkippedMessage::from_bytes(bytes).answers(open) else {
        tracing::debug!(bytes = bytes.len(), "mcp line dropped: not a message");
        return None;
    };
    open.answered(&id);
    let message = format!("the answer of the server cannot be read: {words}");
    let error = json!({"code": UNREADABLE, "message": message});
    Some(
        format!(
            r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#,
            id_as_json(&id)
        )
        .into_bytes(),
    )
}

/// The beginning of a message, for people and models.
fn words(bytes: &[u8]) -> String {
    let beginning = bytes
        .get(..bytes.len().min(8 * MAX_WORDS_CHARS))
        .unwrap_or_default();
    let line = visible(&repair::text(beginning))
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let cut: String = line.chars().take(MAX_WORDS_CHARS).collect();
    if cut.len() < line.len() {
        format!("{cut}…")
    } else {
        cut
    }
}

/// The id in JSON: ours are numbers, and a server may have written one as text.
fn id_as_json(id: &str) -> String {
    if id.parse::<i64>().is_ok() {
        id.to_owned()
    } else {
        Value::from(id).to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rmcp::model::{RequestId, ServerJsonRpcMessage};

    use super::*;

    fn open(ids: &[i64]) -> OpenRequests {
        let open = OpenRequests::default();
        for id in ids {
            let request = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
            open.sent(&serde_json::from_value(request).unwrap());
        }
        open
    }

    fn of(line: &str, ids: &[i64]) -> Option<String> {
        parse(line.as_bytes(), &open(ids))
            .map(|message| String::from_utf8(message.into_owned()).unwrap())
    }

    #[test]
    fn a_message_with_one_sensible_reading_is_read_so() {
        let good = r#"{"jsonrpc":"2.0","id":7,"result":{"a":1.0}}"#;
        let error = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"m"}}"#;
        for (line, expected) in [
            (good, good),
            (error, error),
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{"a":1.0},"error":null}"#,
                good,
            ),
            (r#"{"jsonrpc":"2.0","id":null,"result":{"a":1.0}}"#, good),
            (r#"{"jsonrpc":"2.0","result":{"a":1.0}}"#, good),
            (r#"{"id":7,"result":{"a":1.0}}"#, good),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":null,"result":{"a":1.0}}"#,
                good,
            ),
            (
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"m"}}"#,
                error,
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"result":null,"error":{"code":-1,"message":"m"}}"#,
                error,
            ),
            (&format!("INFO {{pods}} listed {good}"), good),
            (&format!("2026 {good} done"), good),
            (
                &format!(r#"[{{"jsonrpc":"2.0","method":"notifications/x"}},{good}]"#),
                good,
            ),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":\"x\ty\"}}",
                r#"{"jsonrpc":"2.0","id":7,"result":{"a":"x\u0009y"}}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{"a":NaN}}"#,
                r#"{"jsonrpc":"2.0","id":7,"result":{"a":null}}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{"a":1e999}}"#,
                r#"{"jsonrpc":"2.0","id":7,"result":{"a":null}}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"error":"no"}"#,
                r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"no"}}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"error":{"message":"no","data":1}}"#,
                r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"no","data":1}}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/x"}"#,
                r#"{"jsonrpc":"2.0","method":"notifications/x"}"#,
            ),
        ] {
            assert_eq!(of(line, &[7]).as_deref(), Some(expected), "{line}");
        }
        let latin = [
            br#"{"jsonrpc":"2.0","id":7,"result":{"a":"caf"#.as_slice(),
            &[0xe9],
            br#""}}"#,
        ]
        .concat();
        let read = parse(&latin, &open(&[7])).unwrap();
        assert_eq!(
            read,
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":\"caf\u{fffd}\"}}".as_bytes()
        );
    }

    #[test]
    fn an_answer_that_cannot_be_read_ends_its_call_with_its_words() {
        let cut = r#"{"jsonrpc":"2.0","id":7,"result":{"a":"#;
        let message: ServerJsonRpcMessage =
            serde_json::from_str(&of(cut, &[7, 8]).unwrap()).unwrap();
        let ServerJsonRpcMessage::Error(error) = message else {
            panic!("{message:?}")
        };
        assert_eq!(
            (error.id, error.error.code.0),
            (Some(RequestId::Number(7)), UNREADABLE)
        );
        assert!(
            error.error.message.ends_with(cut),
            "{}",
            error.error.message
        );
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":7,"result":{{"a":{}{}}}}}"#,
            "[".repeat(1_000),
            "]".repeat(1_000)
        );
        assert!(of(&deep, &[7, 8]).unwrap().contains("cannot be read"));
        // Without an id, it answers the only request that is open.
        assert!(
            of(r#"{"jsonrpc":"2.0","result":{"a":"#, &[8])
                .unwrap()
                .contains("\"id\":8")
        );
        assert!(
            of(r#"{"jsonrpc":"2.0","id":7}"#, &[7])
                .unwrap()
                .contains("neither a result nor an error")
        );
        for line in [
            "{}",
            r#"{"jsonrpc":"2.0","id":9}"#,
            r#"{"id":null}"#,
            r#"{"jsonrpc":"2.0","error":null}"#,
        ] {
            assert_eq!(of(line, &[7]).as_deref(), Some(line));
        }
        for (line, ids) in [
            ("Traceback (most recent call last):", vec![7]),
            ("{pods} listed", vec![7]),
            (cut, vec![8]),
            (r#"{"jsonrpc":"2.0","result":{"a":"#, vec![7, 8]),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"#,
                vec![7],
            ),
            (" \n", vec![7]),
        ] {
            assert_eq!(of(line, &ids), None, "{line}");
        }
    }

    #[test]
    fn an_answer_without_an_id_counts_only_while_one_call_is_open() {
        let answer = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"m"}}"#;
        assert_eq!(of(answer, &[7, 8]).as_deref(), Some(answer));
        let open = open(&[7, 8]);
        parse(br#"{"jsonrpc":"2.0","id":"7","result":{}}"#, &open);
        assert!(
            String::from_utf8_lossy(&parse(answer.as_bytes(), &open).unwrap()).contains("\"id\":8")
        );
        assert_eq!(open.single(), None);
    }

    proptest! {
        #[test]
        fn any_bytes_become_a_message_or_nothing(
            bytes in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..80),
                "[{}\\[\\]\":,a-z0-9\\\\ud]{0,60}".prop_map(String::into_bytes),
                "(\\{\"jsonrpc\":\"2.0\",\"id\":(7|null|\"7\"),\"(result|error|method)\":[{}\"a-z0-9]{0,9})".prop_map(String::into_bytes),
            ],
        ) {
            if let Some(Cow::Owned(message)) = parse(&bytes, &open(&[7])) {
                prop_assert!(serde_json::from_slice::<Value>(&message).is_ok(), "{:?}", String::from_utf8_lossy(&message));
            }
        }
    }
}
