//! Parses answers of Alertmanager's API (v2), as a script passes them on: a list of groups, a list of alerts that are
//! read one by one, or one group.

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::alert::AlertStatus;
use crate::intake::plain::pairs;
use crate::intake::reading::ParsedBody;
use crate::intake::{fingerprint, subject};
use crate::sources::Traced;

/// Reads an answer; `None` for anything else.
pub(in crate::intake) fn parse(
    value: &Value,
    received_at: Option<DateTime<Utc>>,
) -> Option<Vec<ParsedBody>> {
    let only = std::slice::from_ref(value);
    let items = value.as_array().map_or(only, Vec::as_slice);
    if items.is_empty() {
        return None;
    }
    if items.iter().all(is_group) {
        items.iter().map(|item| group(item, received_at)).collect()
    } else if items.iter().all(is_alert) {
        items.iter().map(|item| alert(item, received_at)).collect()
    } else {
        None
    }
}

/// Whether an item is a group of the API. In a webhook of Alertmanager the receiver is a text.
fn is_group(item: &Value) -> bool {
    item.pointer("/receiver/name").is_some()
        && item.get("labels").is_some_and(Value::is_object)
        && has_alerts(item)
}

fn has_alerts(item: &Value) -> bool {
    item.get("alerts")
        .and_then(Value::as_array)
        .is_some_and(|alerts| !alerts.is_empty())
}

fn is_alert(item: &Value) -> bool {
    item.pointer("/status/state").is_some_and(Value::is_string)
        && item.get("labels").is_some_and(Value::is_object)
}

pub(super) fn is_suppressed(alert: &Value) -> bool {
    alert
        .pointer("/status/state")
        .is_some_and(|state| state == "suppressed")
}

/// An alert may be in two groups, so the key is that of the group: its receiver and its labels.
fn group(item: &Value, received_at: Option<DateTime<Utc>>) -> Option<ParsedBody> {
    let mut reading = super::read(item, received_at)?;
    let receiver = item.pointer("/receiver/name").and_then(Value::as_str);
    let labels = pairs(item.get("labels"));
    let key = fingerprint::of_labels(receiver.unwrap_or_default(), &labels);
    let alerts = item
        .get("alerts")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let name = reading.name.as_deref().unwrap_or_default();
    let by_group = Some(subject::title(name, &labels)).filter(|title| title != name);
    reading.trace.push(Traced::rule(
        "key",
        &key,
        "it is a hash of the receiver and the labels of the group",
    ));
    reading.fingerprint = Some(key);
    if let Some(title) = by_group {
        let because =
            "it is the name of the alert, and the object that the labels of the group name";
        reading.trace.push(Traced::rule("title", &title, because));
        reading.title = title;
    }
    Some(unless_suppressed(reading, alerts))
}

fn alert(item: &Value, received_at: Option<DateTime<Utc>>) -> Option<ParsedBody> {
    let reading = super::read(&Value::Array(vec![item.clone()]), received_at)?;
    Some(unless_suppressed(reading, std::iter::once(item)))
}

fn unless_suppressed<'a>(
    mut reading: ParsedBody,
    mut alerts: impl Iterator<Item = &'a Value>,
) -> ParsedBody {
    if !alerts.all(is_suppressed) {
        return reading;
    }
    let because = Some("state is suppressed".to_owned());
    reading.trace.push(Traced::rule(
        "status",
        AlertStatus::Ignored.as_str(),
        "the state of each alert is suppressed",
    ));
    ParsedBody {
        status: AlertStatus::Ignored,
        ignored_because: because,
        ..reading
    }
}
