//! Bodies of no known form: JSON of any shape, and plain text.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::outline::Outline;
use super::{Reading, fingerprint, severity, subject};

const NAMES: [&str; 4] = ["alertname", "alert_name", "alertName", "alert"];
const TITLES: [&str; 9] = ["title", "name", "summary", "subject", "event", "reason", "description", "message", "text"];
const SEVERITIES: [&str; 3] = ["severity", "priority", "level"];
const STATUSES: [&str; 2] = ["status", "state"];
const RUNBOOKS: [&str; 2] = ["runbook_url", "runbook"];

/// An alert as it stands.
pub(super) fn read_text(text: &str) -> Reading {
    Reading {
        source: "text",
        name: None,
        title: text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned(),
        severity: None,
        resolved: false,
        fingerprint: None,
        members: Vec::new(),
        runbook_url: None,
        text: text.to_owned(),
    }
}

/// JSON that is no webhook we know.
pub(super) fn read_json(value: &Value) -> Reading {
    let empty = Map::new();
    let fields = value.as_object().unwrap_or(&empty);
    let labels = pairs(fields.get("labels"));
    let said = |keys: &[&str]| {
        keys.iter().find_map(|key| text(fields, key).or_else(|| labels.get(*key).cloned())).filter(|s| !s.is_empty())
    };
    let name = said(&NAMES);
    let mut title = name.as_deref().map(|name| subject::title(name, &labels));
    title = title.or_else(|| said(&TITLES)).or_else(|| fields.keys().next().cloned());
    let resolved = said(&STATUSES).is_some_and(|status| status.eq_ignore_ascii_case("resolved"));
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
        severity: said(&SEVERITIES).as_deref().and_then(severity::of_word),
        resolved,
        fingerprint,
        members,
        runbook_url: said(&RUNBOOKS).or_else(|| {
            let annotations = pairs(fields.get("annotations"));
            RUNBOOKS.iter().find_map(|key| annotations.get(*key).cloned())
        }),
        name,
        text: outline.into_text(),
    }
}

/// A field that is a non-empty text.
pub(super) fn text(fields: &Map<String, Value>, key: &str) -> Option<String> {
    fields.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

/// An object of texts; other values as JSON.
pub(super) fn pairs(value: Option<&Value>) -> BTreeMap<String, String> {
    let pairs = value.and_then(Value::as_object).into_iter().flatten();
    pairs.map(|(key, value)| (key.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned))).collect()
}
