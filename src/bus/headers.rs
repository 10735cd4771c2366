//! The headers of an alert: their names, which of them are copied, and their form outside of NATS.
//!
//! Only what is listed here ever travels from a producer's message into a copy. A producer's `Nats-*` header in a copy
//! would make the server refuse it (`Nats-Expected-Stream`) or swallow it (`Nats-Msg-Id`).

use std::str::FromStr;

use async_nats::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};

use super::error::Error;

/// The producer's id of the alert: a `UUIDv7`.
pub const SESSION_ID: &str = "Tarsy-Session-Id";
/// What chains are chosen by.
pub const ALERT_TYPE: &str = "Tarsy-Alert-Type";
/// What makes two alerts the same.
pub const FINGERPRINT: &str = "Tarsy-Fingerprint";
/// A page that says what to do about it.
pub const RUNBOOK_URL: &str = "Tarsy-Runbook-Url";
/// Begin another investigation although one of the fingerprint has completed within the cooldown: `true`.
pub const FORCE: &str = "Tarsy-Force";
/// The chain to use, whatever the alert type.
pub const CHAIN: &str = "Tarsy-Chain";
/// For people: the alert's name and what it is about.
pub const TITLE: &str = "Tarsy-Title";
/// Of an alert that was queued again on purpose: the session that it does again.
pub const RETRY_OF: &str = "Tarsy-Retry-Of";
/// Of a follow-up question, and only on a subject of questions: the session that it asks about. The body is the question.
pub const PARENT_ID: &str = "Tarsy-Parent-Id";
/// W3C trace context.
pub const TRACEPARENT: &str = "traceparent";

/// The headers that are read from an alert and go into copies of it.
pub const ALLOWED: [&str; 10] =
    [SESSION_ID, ALERT_TYPE, FINGERPRINT, RUNBOOK_URL, FORCE, CHAIN, TITLE, RETRY_OF, PARENT_ID, TRACEPARENT];

/// Of a dead letter: the reason's word.
pub const DEAD_REASON: &str = "Tarsy-Dead-Reason";
/// Of a dead letter: the reason for people, at most 1 KiB.
pub const DEAD_DETAIL: &str = "Tarsy-Dead-Detail";
/// Of a dead letter: the subject the alert came on.
pub const DEAD_SUBJECT: &str = "Tarsy-Dead-Subject";
/// Of a dead letter: its sequence in the stream of alerts.
pub const DEAD_SEQUENCE: &str = "Tarsy-Dead-Sequence";
/// Of a dead letter: how often it was delivered.
pub const DEAD_DELIVERIES: &str = "Tarsy-Dead-Deliveries";

/// The allowed headers of a message as an object of strings, by their canonical names.
pub(super) fn allowed(headers: Option<&HeaderMap>) -> Value {
    let mut object = Map::new();
    for (name, values) in headers.into_iter().flat_map(HeaderMap::iter) {
        let name: &str = name.as_ref();
        let canonical = ALLOWED.into_iter().find(|allowed| allowed.eq_ignore_ascii_case(name));
        if let (Some(canonical), Some(value)) = (canonical, values.first()) {
            object.insert(canonical.to_owned(), Value::String(value.as_str().to_owned()));
        }
    }
    Value::Object(object)
}

/// Headers for a copy: the allowed ones of `object`, whatever else it holds.
pub(super) fn for_copy(object: &Value) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    for name in ALLOWED {
        if let Some(value) = object.get(name).and_then(Value::as_str) {
            insert(&mut headers, name, value)?;
        }
    }
    Ok(headers)
}

/// The same for headers that came over the wire: what they hold that cannot be sent becomes a space, so that a copy is
/// always possible.
pub(super) fn for_copy_of_stored(object: &Value) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for name in ALLOWED {
        if let Some(value) = object.get(name).and_then(Value::as_str) {
            headers.insert(HeaderName::from_static(name), value.replace(['\r', '\n'], " "));
        }
    }
    headers
}

/// Adds a header without the panic that async-nats has for a line break.
pub(super) fn insert(headers: &mut HeaderMap, name: &'static str, value: &str) -> Result<(), Error> {
    let value = HeaderValue::from_str(value).map_err(|_| Error::Header(name.to_owned()))?;
    headers.insert(HeaderName::from_static(name), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_allowed_headers_travel_and_under_their_canonical_name() {
        let mut headers = HeaderMap::new();
        headers.insert("tarsy-fingerprint", "f1");
        headers.insert("Nats-Msg-Id", "id");
        headers.insert("Nats-Expected-Stream", "OTHER");
        headers.insert("X-Secret", "s");
        headers.insert("tarsy-parent-id", "p");
        headers.insert("traceparent", "00-1-2-01");
        let object = allowed(Some(&headers));
        let expected = json!({"Tarsy-Fingerprint": "f1", "Tarsy-Parent-Id": "p", "traceparent": "00-1-2-01"});
        assert_eq!(object, expected);
        assert_eq!(allowed(Some(&for_copy(&object).unwrap())), expected);

        let copy = for_copy(&json!({"Tarsy-Fingerprint": "f1", "Nats-Msg-Id": "id", "Tarsy-Force": 1})).unwrap();
        assert_eq!(allowed(Some(&copy)), json!({"Tarsy-Fingerprint": "f1"}));
        assert_eq!(copy.len(), 1);
    }

    #[test]
    fn a_stored_header_that_cannot_be_sent_does_not_hold_up_its_alert() {
        let copy = for_copy_of_stored(&json!({"Tarsy-Chain": "a\nb", "Tarsy-Title": "t", "Nats-Msg-Id": "x"}));
        assert_eq!(allowed(Some(&copy)), json!({"Tarsy-Chain": "a b", "Tarsy-Title": "t"}));
        assert_eq!(copy.len(), 2);
    }

    #[test]
    fn a_line_break_in_a_header_is_an_error() {
        let error = for_copy(&json!({"Tarsy-Chain": "a\nb"})).unwrap_err();
        assert_eq!(error.to_string(), "header Tarsy-Chain contains a line break");
    }
}
