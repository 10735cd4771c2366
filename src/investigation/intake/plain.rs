//! Parses bodies of no known form: JSON of any shape, and plain text.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::outline::Outline;
use super::{Reading, fingerprint, severity, subject};
use crate::investigation::alert::AlertStatus;

const NAMES: [&str; 4] = ["alertname", "alert_name", "alertName", "alert"];
const TITLES: [&str; 9] = ["title", "name", "summary", "subject", "event", "reason", "description", "message", "text"];
const STATUSES: [&str; 2] = ["status", "state"];
const RUNBOOKS: [&str; 2] = ["runbook_url", "runbook"];

/// An alert of plain text.
pub(super) fn read_text(text: &str) -> Reading {
    Reading {
        source: "text",
        title: text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned(),
        text: text.to_owned(),
        ..Reading::default()
    }
}

/// JSON that is no known webhook.
pub(super) fn read_json(value: &Value) -> Reading {
    let empty = Map::new();
    let fields = value.as_object().unwrap_or(&empty);
    let labels = pairs(fields.get("labels"));
    let first = |keys: &[&str]| {
        keys.iter().find_map(|key| text(fields, key).or_else(|| labels.get(*key).cloned())).filter(|s| !s.is_empty())
    };
    let name = first(&NAMES);
    let mut title = name.as_deref().map(|name| subject::title(name, &labels));
    title = title.or_else(|| first(&TITLES)).or_else(|| fields.keys().next().cloned());
    let status = first(&STATUSES).map(|word| AlertStatus::of_word(&word)).unwrap_or_default();
    let by_labels = || {
        let name = name.as_deref().unwrap_or_default();
        (!labels.is_empty()).then(|| fingerprint::of_labels(name, &labels))
    };
    let fingerprint = text(fields, "groupKey").or_else(|| text(fields, "fingerprint")).or_else(by_labels);
    let member = || fingerprint::member(name.as_deref().unwrap_or_default(), &labels);
    let members = if labels.is_empty() { Vec::new() } else { vec![member()] };
    let mut outline = Outline::default();
    outline.value(0, value);
    Reading {
        source: "json",
        title: title.unwrap_or_else(|| "JSON alert".to_owned()),
        severity: first(&severity::KEYS).as_deref().and_then(severity::of_word),
        status,
        fingerprint,
        members,
        reports: Vec::new(),
        runbook_url: first(&RUNBOOKS).or_else(|| runbook(&pairs(fields.get("annotations")))),
        name,
        text: outline.into_text(),
    }
}

/// The runbook that labels or annotations name.
pub(super) fn runbook(pairs: &BTreeMap<String, String>) -> Option<String> {
    RUNBOOKS.iter().find_map(|key| pairs.get(*key).cloned())
}

/// The text of a field, if it is not empty.
pub(super) fn text(fields: &Map<String, Value>, key: &str) -> Option<String> {
    fields.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

/// The fields of an object as texts; other values as JSON.
pub(super) fn pairs(value: Option<&Value>) -> BTreeMap<String, String> {
    let pairs = value.and_then(Value::as_object).into_iter().flatten();
    pairs.map(|(key, value)| (key.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned))).collect()
}
