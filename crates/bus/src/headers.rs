//! The headers of alerts and dead letters: from NATS to JSON and back, and the names that only dead letters have.
//!
//! Only the headers in [`ALLOWED`] are copied from a producer's message. A producer's `Nats-*` header in a copy would
//! make the server refuse the copy (`Nats-Expected-Stream`) or drop it as a duplicate (`Nats-Msg-Id`).

use std::str::FromStr;

use async_nats::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::error::Error;

pub use tarsy_core::intake::headers::{
    ALERT_TYPE, ALLOWED, ASKED_BY, CHAIN, CONTENT_ENCODING, CONTENT_TYPE, FINGERPRINT, FORCE,
    LEFT_OUT, PARENT_ID, PART, RETRY_OF, RUNBOOK_URL, SESSION_ID, SOURCE, TENANT, THREAD, TITLE,
    TOOLS, TRACEPARENT,
};

/// In a dead letter: the word of its `DeadReason`.
pub const DEAD_REASON: &str = "Tarsy-Dead-Reason";
/// In a dead letter: the reason for people, at most 1 KiB.
pub const DEAD_DETAIL: &str = "Tarsy-Dead-Detail";
/// In a dead letter: the subject that the alert was published on.
pub const DEAD_SUBJECT: &str = "Tarsy-Dead-Subject";
/// In a dead letter: the sequence that the alert had in the stream of alerts.
pub const DEAD_SEQUENCE: &str = "Tarsy-Dead-Sequence";
/// In a dead letter: how often the alert was delivered.
pub const DEAD_DELIVERIES: &str = "Tarsy-Dead-Deliveries";

/// The allowed headers of a message as an object of strings, by their canonical names.
pub(super) fn allowed(headers: Option<&HeaderMap>) -> Value {
    let all = headers.into_iter().flat_map(HeaderMap::iter);
    let allowed = all.filter_map(|(name, values)| {
        let canonical = ALLOWED
            .into_iter()
            .find(|allowed| allowed.eq_ignore_ascii_case(name.as_ref()))?;
        Some((canonical, values.first()?.as_str().to_owned()))
    });
    allowed.collect()
}

/// Headers for a copy: the allowed ones of `object`. Its other entries are ignored.
pub(super) fn for_copy(object: &Value) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    for (name, value) in allowed_entries(object) {
        insert(&mut headers, name, value)?;
    }
    Ok(headers)
}

/// Headers for a copy of a stored alert: a line break in a value, which cannot be sent, becomes a space, so that a copy
/// is always possible.
pub(super) fn for_copy_of_stored(object: &Value) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in allowed_entries(object) {
        headers.insert(name, value.replace(['\r', '\n'], " "));
    }
    headers
}

fn allowed_entries(object: &Value) -> impl Iterator<Item = (&'static str, &str)> {
    ALLOWED
        .into_iter()
        .filter_map(|name| Some((name, object.get(name)?.as_str()?)))
}

/// Adds a header; a line break is an error, while async-nats would panic.
pub(super) fn insert(
    headers: &mut HeaderMap,
    name: &'static str,
    value: &str,
) -> Result<(), Error> {
    let value = HeaderValue::from_str(value).map_err(|_| Error::Header(name.to_owned()))?;
    headers.insert(HeaderName::from_static(name), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_allowed_headers_are_copied_and_under_their_canonical_names() {
        let mut headers = HeaderMap::new();
        headers.insert("tarsy-fingerprint", "f1");
        headers.insert("Nats-Msg-Id", "id");
        headers.insert("Nats-Expected-Stream", "OTHER");
        headers.insert("X-Secret", "s");
        headers.insert("tarsy-parent-id", "p");
        headers.insert("traceparent", "00-1-2-01");
        let object = allowed(Some(&headers));
        let expected =
            json!({"Tarsy-Fingerprint": "f1", "Tarsy-Parent-Id": "p", "traceparent": "00-1-2-01"});
        assert_eq!(object, expected);
        assert_eq!(allowed(Some(&for_copy(&object).unwrap())), expected);

        let copy =
            for_copy(&json!({"Tarsy-Fingerprint": "f1", "Nats-Msg-Id": "id", "Tarsy-Force": 1}))
                .unwrap();
        assert_eq!(allowed(Some(&copy)), json!({"Tarsy-Fingerprint": "f1"}));
        assert_eq!(copy.len(), 1);
    }

    #[test]
    fn a_line_break_in_a_stored_header_becomes_a_space() {
        let copy = for_copy_of_stored(
            &json!({"Tarsy-Chain": "a\nb", "Tarsy-Title": "t", "Nats-Msg-Id": "x"}),
        );
        assert_eq!(
            allowed(Some(&copy)),
            json!({"Tarsy-Chain": "a b", "Tarsy-Title": "t"})
        );
        assert_eq!(copy.len(), 2);
    }

    #[test]
    fn a_line_break_in_a_header_is_an_error() {
        let error = for_copy(&json!({"Tarsy-Chain": "a\nb"})).unwrap_err();
        assert_eq!(
            error.to_string(),
            "header Tarsy-Chain contains a line break"
        );
    }
}
