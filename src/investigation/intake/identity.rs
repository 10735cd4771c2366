//! The identity of JSON of no known form: its hash without the fields that differ between two messages about one
//! condition: times, measured values, states, severities, and ids of messages.

use serde_json::{Map, Value};

use super::fingerprint;
use crate::investigation::alert::AlertStatus;
use crate::investigation::sources::{canonical, parse_time, severity_of, status_of};

/// Keys with an identity of the sender's choice, in lower case without separators.
const KEYS: [&str; 12] = [
    "dedupkey",
    "dedupekey",
    "deduplicationkey",
    "dedupid",
    "incidentkey",
    "alertkey",
    "aggregationkey",
    "alias",
    "entityid",
    "problemkey",
    "uniqueid",
    "eventkey",
];
/// Keys of free text that changes with the state. They do not count beside a name.
const TEXTS: [&str; 10] =
    ["message", "description", "summary", "text", "body", "details", "detail", "reason", "output", "msg"];
/// The same at the end of a key, as in `serviceoutput`.
const TEXT_ENDS: [&str; 8] = ["message", "description", "summary", "details", "detail", "reason", "output", "cause"];
/// Keys with a name.
const NAMES: [&str; 18] = [
    "title",
    "name",
    "alert",
    "alertname",
    "alarm",
    "alarmname",
    "rule",
    "rulename",
    "check",
    "checkname",
    "monitor",
    "monitorname",
    "monitorfriendlyname",
    "policyname",
    "conditionname",
    "sensor",
    "servicedesc",
    "subject",
];
/// Objects whose name is that of a resource, and says nothing about its problem.
const RESOURCES: [&str; 14] = [
    "host",
    "server",
    "node",
    "device",
    "instance",
    "user",
    "author",
    "organization",
    "project",
    "team",
    "page",
    "space",
    "account",
    "cluster",
];
/// Keys of what happened to the alert.
const EVENTS: [&str; 5] = ["event", "eventname", "eventtype", "action", "type"];
/// Pieces of their words, beside those of a state.
const EVENT_PIECES: [&str; 4] = ["occurrence", "reactivated", "updated", "repeated"];
/// Keys of fields that change from message to message.
const VOLATILE: [&str; 44] = [
    "status",
    "state",
    "severity",
    "priority",
    "level",
    "urgency",
    "action",
    "value",
    "values",
    "current",
    "currentvalue",
    "previous",
    "previousstate",
    "oldstate",
    "newstate",
    "duration",
    "elapsed",
    "uptime",
    "ts",
    "when",
    "since",
    "until",
    "clock",
    "epoch",
    "eventid",
    "messageid",
    "requestid",
    "deliveryid",
    "traceid",
    "nonce",
    "signature",
    "sequence",
    "seq",
    "attempt",
    "notificationnumber",
    "resolvedby",
    "acknowledgedby",
    "alarmurl",
    "alerturl",
    "incidenturl",
    "resulturl",
    "rcalink",
    "resultgroups",
    "resultgroupstriggered",
];
/// Ends of such keys, as in `lastservicestate`.
const VOLATILE_ENDS: [&str; 11] = [
    "state",
    "status",
    "severity",
    "statetype",
    "statename",
    "statuscode",
    "duration",
    "problemid",
    "occurrenceid",
    "value",
    "locations",
];
/// Ends of keys with times.
const TIMES: [&str; 4] = ["time", "timestamp", "date", "datetime"];
/// Objects whose `id` names the condition or the incident.
const OWNERS: [&str; 9] = ["incident", "alert", "monitor", "check", "rule", "issue", "problem", "host", "service"];

/// A key that the sender has chosen.
pub(super) fn key_of(fields: &Map<String, Value>) -> Option<String> {
    let known = |wanted: &str| fields.iter().find(|(key, _)| plain(key) == wanted);
    KEYS.iter().find_map(|wanted| canonical(known(wanted)?.1))
}

/// The hash of a body without its noise; of the whole body if nothing else is left.
pub(super) fn of_json(value: &Value) -> String {
    let names = if has_name("", value) { Names::Some } else { Names::None };
    let stable = stable("", value, names).and_then(|value| canonical(&value));
    let text = stable.or_else(|| canonical(value)).unwrap_or_else(|| value.to_string());
    fingerprint::of_body(text.as_bytes())
}

/// Whether a body has a name, so that its free texts do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    Some,
    None,
}

fn has_name(owner: &str, value: &Value) -> bool {
    match value {
        Value::Object(fields) => {
            let has = |word: &str| fields.iter().any(|(key, value)| plain(key) == word && value.is_string());
            let is_name =
                |key: &str| NAMES.contains(&plain(key).as_str()) && !RESOURCES.contains(&plain(owner).as_str());
            has("service") && (has("host") || has("hostname"))
                || fields.iter().any(|(key, value)| {
                    is_name(key) && stable_text(value.as_str().unwrap_or_default()).is_some() || has_name(key, value)
                })
        }
        Value::Array(items) => items.iter().any(|item| has_name(owner, item)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The value without its noise. `owner` is the key of the object.
fn stable(owner: &str, value: &Value, names: Names) -> Option<Value> {
    match value {
        Value::Null | Value::Bool(_) => None,
        Value::Number(number) => is_id(owner).then(|| Value::String(number.to_string())),
        Value::String(text) => stable_text(text).map(Value::String),
        Value::Array(items) => {
            let items: Vec<Value> = items.iter().filter_map(|item| stable(owner, item, names)).collect();
            (!items.is_empty()).then_some(Value::Array(items))
        }
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| {
                let is_text = names == Names::Some && is_text_key(key);
                let kept = !is_volatile(owner, key) && !is_text && !is_event(key, value);
                Some((key.clone(), if kept { stable(key, value, names) } else { None }?))
            };
            let fields: Map<String, Value> = fields.iter().filter_map(field).collect();
            (!fields.is_empty()).then_some(Value::Object(fields))
        }
    }
}

/// Whether a field has free text.
fn is_text_key(key: &str) -> bool {
    let word = plain(key);
    TEXTS.contains(&word.as_str()) || TEXT_ENDS.iter().any(|end| word.ends_with(end))
}

/// Whether a field says what happened to the alert: `resolved_item`.
fn is_event(key: &str, value: &Value) -> bool {
    let is_piece = |piece: &str| EVENT_PIECES.contains(&piece) || status_of(piece).is_some();
    EVENTS.contains(&plain(key).as_str())
        && value.as_str().is_some_and(|text| text.to_lowercase().split(|c: char| !c.is_alphanumeric()).any(is_piece))
}

/// The words of a text, without those that name a state or a severity, and without numbers.
pub(super) fn stable_text(text: &str) -> Option<String> {
    if parse_time(text).is_some() {
        return None;
    }
    let words = text.split_whitespace().filter(|word| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        !word.is_empty()
            && !is_number(word)
            && parse_time(word).is_none()
            // `ping` is the word of a test, and the name of many checks.
            && status_of(word).is_none_or(|status| status == AlertStatus::Test)
            && severity_of(word).is_none()
    });
    let words: Vec<&str> = words.collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// `94`, `94%`, `1.5GB`, `12ms`.
fn is_number(word: &str) -> bool {
    let digits = word.trim_end_matches(|c: char| c.is_alphabetic() || c == '%');
    !digits.is_empty()
        && word.len() - digits.len() <= 3
        && digits.chars().all(|c| c.is_ascii_digit() || ".,:".contains(c))
        && digits.matches('.').count() <= 1
}

fn is_id(key: &str) -> bool {
    let key = plain(key);
    ["id", "port", "code", "shard", "index", "key"].iter().any(|end| key.ends_with(end))
}

/// Whether a field is named after a time.
pub(super) fn is_time_key(key: &str) -> bool {
    let word = plain(key);
    TIMES.iter().any(|end| word.ends_with(end)) || key.ends_with("_at") || key.ends_with("At")
}

/// An `id` counts only in an object that it identifies.
fn is_volatile(owner: &str, key: &str) -> bool {
    let word = plain(key);
    VOLATILE.contains(&word.as_str())
        || VOLATILE_ENDS.iter().any(|end| word.ends_with(end))
        || is_time_key(key)
        || matches!(word.as_str(), "id" | "uuid" | "guid") && !OWNERS.contains(&plain(owner).as_str())
}

/// `Dedup-Key` and `dedup_key` are `dedupkey`.
pub(super) fn plain(key: &str) -> String {
    key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn another_time_value_state_or_order_is_the_same_condition() {
        let first = json!({
            "id": 17, "name": "Disk [FIRING] 94% full", "host": "db-1", "state": "down", "message": "94 % on db-1",
            "check": {"id": 5, "checked_at": "2026-11-25T10:00:00Z"}, "tags": ["b", "a"], "took": 0.12,
        });
        let again = json!({
            "tags": ["a", "b"], "check": {"checked_at": "2026-11-25T11:00:00Z", "id": 5}, "took": 3,
            "id": 18, "name": "Disk [OK] 12% full", "host": "db-1", "state": "up", "message": "all is well",
        });
        assert_eq!(of_json(&first), of_json(&again));
        for (pointer, value) in [("/host", json!("db-2")), ("/check/id", json!(6)), ("/name", json!("Inodes"))] {
            let mut other = first.clone();
            *other.pointer_mut(pointer).unwrap() = value;
            assert_ne!(of_json(&first), of_json(&other), "{pointer}");
        }
    }

    #[test]
    fn a_body_of_noise_is_its_own_hash() {
        assert_ne!(of_json(&json!({"value": 1})), of_json(&json!({"value": 2})));
        assert_ne!(of_json(&json!([1])), of_json(&json!([2])));
    }

    #[test]
    fn a_key_of_the_sender_is_found_in_any_spelling() {
        for key in ["dedup_key", "dedupKey", "Dedup-Key"] {
            assert_eq!(key_of(json!({"x": 1, key: "k"}).as_object().unwrap()), Some("k".to_owned()), "{key}");
        }
    }
}
