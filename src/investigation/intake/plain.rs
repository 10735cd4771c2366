//! Parses bodies of no known form: JSON of any shape, and plain text.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::outline::Outline;
use super::reading::Reading;
use super::{fingerprint, identity, subject};
use crate::investigation::alert::{AlertStatus, Severity};
use crate::investigation::sources::{Note, parse_time, severity_of, status_of};

/// Of the alert's type, before its title.
const NAMES: [&str; 14] = [
    "alertname",
    "alert_name",
    "alertName",
    "alert",
    "rule_name",
    "ruleName",
    "monitor_name",
    "monitorName",
    "check_name",
    "checkName",
    "policy_name",
    "condition_name",
    "rule",
    "check",
];
const TITLES: [&str; 11] =
    ["title", "name", "summary", "subject", "headline", "event", "reason", "description", "message", "text", "msg"];
/// Titles after these are sentences and no types.
const SHORT_TITLES: usize = 5;
const STATUSES: [&str; 14] = [
    "status",
    "state",
    "alert_status",
    "alert_state",
    "alertStatus",
    "current_state",
    "currentState",
    "new_state",
    "newState",
    "event_type",
    "eventType",
    "action",
    "type",
    "event",
];
const SEVERITIES: [&str; 6] = ["severity", "priority", "level", "urgency", "criticality", "alert_severity"];
const RUNBOOKS: [&str; 2] = ["runbook_url", "runbook"];
/// Objects around the fields of an alert.
const ENVELOPES: [&str; 4] = ["data", "event", "incident", "alert"];
const MAX_ENVELOPES: usize = 4;
/// Objects below an envelope that are searched after it.
const MAX_OBJECTS: usize = 32;
/// A longer title is a sentence and no type.
const MAX_TYPE_CHARS: usize = 80;

/// An alert of plain text.
pub(super) fn read_text(text: &str) -> Reading {
    Reading {
        source: "text".to_owned(),
        title: text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned(),
        text: text.to_owned(),
        ..Reading::default()
    }
}

/// JSON that is no known webhook.
pub(super) fn read_json(value: &Value) -> Reading {
    let fields = Fields::of(value);
    let labels = fields.labels();
    let name = fields.first(&NAMES, &labels);
    let by_name = name.as_deref().map(|name| subject::title(name, &labels));
    let found = fields.first(&TITLES, &labels);
    let of_title =
        || fields.first(TITLES.get(..SHORT_TITLES).unwrap_or_default(), &labels).filter(|title| is_type(title));
    let own = fields.own().iter().find_map(|fields| {
        text(fields, "groupKey").or_else(|| text(fields, "fingerprint")).or_else(|| identity::key_of(fields))
    });
    let by_labels = || {
        let name = name.as_deref().unwrap_or_default();
        (!labels.is_empty()).then(|| fingerprint::of_labels(name, &labels))
    };
    let member = || fingerprint::member(name.as_deref().unwrap_or_default(), &labels);
    let members = if labels.is_empty() { Vec::new() } else { vec![member()] };
    let mut outline = Outline::default();
    outline.value(0, value);
    let first_key = || value.as_object().and_then(|fields| fields.keys().next().cloned());
    Reading {
        source: "json".to_owned(),
        title: by_name
            .or(found)
            .or_else(|| fields.sentence())
            .or_else(first_key)
            .unwrap_or_else(|| "JSON alert".to_owned()),
        severity: fields.severity(&labels),
        status: fields.status(&labels),
        fingerprint: own.or_else(by_labels).or_else(|| Some(identity::of_json(value))),
        members,
        runbook_url: fields.first(&RUNBOOKS, &labels).or_else(|| fields.annotated_runbook()),
        name: name.clone().or_else(of_title),
        text: outline.into_text(),
        labels,
        notes: vec![Note::Unrecognised],
        ..Reading::default()
    }
}

fn is_type(title: &str) -> bool {
    title.chars().count() <= MAX_TYPE_CHARS && !title.contains('\n')
}

/// The objects of a body: first those in an envelope, from the innermost, then the objects in them.
struct Fields<'v> {
    objects: Vec<&'v Map<String, Value>>,
    /// The number of envelopes among them.
    envelopes: usize,
}

impl<'v> Fields<'v> {
    fn of(value: &'v Value) -> Self {
        let mut objects = Vec::new();
        let mut next = only_item(value).as_object();
        while let Some(fields) = next.filter(|_| objects.len() < MAX_ENVELOPES) {
            objects.insert(0, fields);
            next = inner(fields);
        }
        let envelopes = objects.len();
        let mut at = 0;
        while let Some(fields) = objects.get(at).copied().filter(|_| objects.len() < MAX_OBJECTS) {
            let below = fields.iter().filter(|(key, _)| !matches!(key.as_str(), "labels" | "annotations"));
            let below: Vec<_> = below.filter_map(|(_, value)| value.as_object()).collect();
            for fields in below {
                if !objects.iter().any(|known| std::ptr::eq(*known, fields)) {
                    objects.push(fields);
                }
            }
            at += 1;
        }
        Self { objects, envelopes }
    }

    /// The objects of the envelopes.
    fn own(&self) -> &[&'v Map<String, Value>] {
        self.objects.get(..self.envelopes).unwrap_or_default()
    }

    fn labels(&self) -> BTreeMap<String, String> {
        let labels = self.own().iter().map(|fields| pairs(fields.get("labels")));
        labels.rev().find(|labels| !labels.is_empty()).unwrap_or_default()
    }

    /// The text of the first key that an object has; of an envelope before the labels, and then of any other object.
    fn first(&self, keys: &[&str], labels: &BTreeMap<String, String>) -> Option<String> {
        let of = |fields: &Map<String, Value>| keys.iter().find_map(|key| text(fields, key));
        let with_labels = |fields: &Map<String, Value>| {
            keys.iter().find_map(|key| text(fields, key).or_else(|| labels.get(*key).cloned()))
        };
        let found = self.own().iter().find_map(|fields| with_labels(fields));
        found.or_else(|| self.objects.iter().find_map(|fields| of(fields))).filter(|text| !text.is_empty())
    }

    /// The first text of several words, for a body without any known key.
    fn sentence(&self) -> Option<String> {
        let texts = self.objects.iter().flat_map(|fields| fields.values()).filter_map(Value::as_str);
        let is_sentence = |text: &&str| {
            let text = text.trim();
            text.contains(' ') && !text.contains('\n') && text.chars().count() <= MAX_TYPE_CHARS
        };
        texts.filter(|text| parse_time(text).is_none()).find(is_sentence).map(str::to_owned)
    }

    /// Each text of one of the keys, in the same order.
    fn all(&self, keys: &[&'static str], labels: &BTreeMap<String, String>) -> Vec<String> {
        let of =
            |fields: &&Map<String, Value>| -> Vec<String> { keys.iter().filter_map(|key| text(fields, key)).collect() };
        let own = self.own().iter().flat_map(of);
        let labelled = keys.iter().filter_map(|key| labels.get(*key).cloned());
        own.chain(labelled).chain(self.objects.iter().skip(self.envelopes).flat_map(of)).collect()
    }

    /// A known word decides; other words fire.
    fn status(&self, labels: &BTreeMap<String, String>) -> AlertStatus {
        let is_over = |fields: &&Map<String, Value>| {
            ["resolved", "is_resolved", "recovered"].iter().any(|key| fields.get(*key) == Some(&Value::Bool(true)))
        };
        if self.own().iter().any(is_over) {
            return AlertStatus::Resolved;
        }
        self.all(&STATUSES, labels).iter().find_map(|word| status_of(word)).unwrap_or_default()
    }

    fn severity(&self, labels: &BTreeMap<String, String>) -> Option<Severity> {
        self.all(&SEVERITIES, labels).iter().find_map(|word| severity_of(word))
    }

    fn annotated_runbook(&self) -> Option<String> {
        self.own().iter().find_map(|fields| runbook(&pairs(fields.get("annotations"))))
    }
}

/// The item of a list that has only one.
fn only_item(value: &Value) -> &Value {
    match value.as_array().map(Vec::as_slice) {
        Some([only]) => only,
        _ => value,
    }
}

/// The object in an envelope.
fn inner(fields: &Map<String, Value>) -> Option<&Map<String, Value>> {
    let only = fields.values().next().filter(|_| fields.len() == 1);
    let enveloped = ENVELOPES.iter().find_map(|key| fields.get(*key)?.as_object());
    only.and_then(|value| only_item(value).as_object()).or(enveloped)
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
