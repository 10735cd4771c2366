//! Parses bodies of no known form: JSON of any shape, and plain text.
//!
//! `fields` finds values by the names of their keys, in any spelling; `words` has these names.

mod fields;
mod words;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use self::fields::Fields;
use super::outline::Outline;
use super::reading::Reading;
use super::{fingerprint, identity, subject};
use crate::investigation::sources::Note;

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
    let name = fields.name(&labels);
    let by_name = name.as_deref().map(|name| subject::title(name, &fields.place(name, &labels)));
    let found = fields.first(&words::TITLES, &labels);
    let of_title = || fields.first(&words::SHORT_TITLES, &labels).filter(|title| is_type(title));
    let own = fields.own().find_map(|fields| {
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
        runbook_url: fields.first(&words::RUNBOOKS, &labels).or_else(|| fields.annotated_runbook()),
        name: name.clone().or_else(of_title),
        text: outline.into_text(),
        annotations: fields.annotations(),
        labels,
        notes: vec![Note::Unrecognised],
        ..Reading::default()
    }
}

fn is_type(title: &str) -> bool {
    title.chars().count() <= MAX_TYPE_CHARS && !title.contains('\n')
}

/// The runbook that labels or annotations name.
pub(super) fn runbook(pairs: &BTreeMap<String, String>) -> Option<String> {
    ["runbook_url", "runbook"].iter().find_map(|key| pairs.get(*key).cloned())
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
