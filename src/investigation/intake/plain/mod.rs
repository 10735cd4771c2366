//! Parses bodies of no known form: JSON of any shape, and plain text.
//!
//! `fields` finds values by the names of their keys, in any spelling; `words` has these names. `facts` are the values
//! with the pieces of their keys; `state`, with `times`, judges the status by them, and `severity` the severity.

mod facts;
mod fields;
mod kubernetes;
mod list;
mod severity;
mod state;
mod times;
mod words;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use self::fields::Fields;
use self::kubernetes::Event;
use super::batch::Urgency;
use super::outline::Outline;
use super::reading::Reading;
use super::{fingerprint, identity, subject, webhook};
use crate::investigation::alert::AlertStatus;
use crate::investigation::sources::{Note, status_of};

/// A longer title is a sentence and no type.
const MAX_TYPE_CHARS: usize = 80;

/// The key of a plain text whose first line begins with its state; `None` for one that is only the hash of the text.
pub(super) fn text_key(text: &str) -> Option<String> {
    let title = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let mark = state::mark(title)?;
    status_of(mark.word).filter(|status| *status != AlertStatus::Test)?;
    Some(fingerprint::of_body(text.replacen(title, mark.rest, 1).trim().as_bytes()))
}

/// An alert of plain text. Its first line may begin with its state: `[RESOLVED] disk full`. A text that differs only in
/// that state has the same fingerprint.
pub(super) fn read_text(text: &str) -> Reading {
    let title = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let mark = state::mark(title);
    let status = mark.and_then(|mark| status_of(mark.word)).filter(|status| *status != AlertStatus::Test);
    Reading {
        source: "text".to_owned(),
        title: title.to_owned(),
        status: status.unwrap_or_default(),
        fingerprint: text_key(text),
        text: text.to_owned(),
        ..Reading::default()
    }
}

/// JSON that is no known webhook: one alert, or each of its list.
pub(super) fn read_all(value: &Value, received_at: Option<DateTime<Utc>>) -> Vec<Reading> {
    let Some(elements) = list::elements(value) else { return vec![read_json(value, received_at)] };
    let is_alert = |element: &&Value| element.as_object().is_some_and(|fields| !fields.is_empty());
    elements.iter().filter(is_alert).map(|element| read_json(element, received_at)).collect()
}

/// How bad the alert of a body is, as far as the names of its fields tell.
pub(super) fn urgency(value: &Value, received_at: Option<DateTime<Utc>>) -> Urgency {
    let facts = facts::facts(value);
    let status = state::judge(&facts, None, received_at).status;
    Urgency::of(status, severity::judge(&facts).severity.unwrap_or_default())
}

/// The same of an element of a list: an alert with labels, a group of such alerts, or JSON of any form.
pub(super) fn urgency_of_element(value: &Value, received_at: Option<DateTime<Utc>>) -> Urgency {
    webhook::urgency(value, received_at).unwrap_or_else(|| urgency(value, received_at))
}

/// JSON that is one alert of no known form.
pub(super) fn read_json(value: &Value, received_at: Option<DateTime<Utc>>) -> Reading {
    let fields = Fields::of(value);
    let facts = facts::facts(value);
    let labels = fields.labels();
    let event = fields.own().find_map(Event::of);
    let name = event.as_ref().map(|event| event.reason.clone()).or_else(|| fields.name(&labels));
    let place = |name: &str| event.as_ref().map_or_else(|| fields.place(name, &labels), |event| event.place.clone());
    let by_name = name.as_deref().map(|name| subject::title(name, &place(name)));
    let found = fields.first(&words::TITLES, &labels).or_else(|| facts::title(&facts));
    let of_title = || fields.first(&words::SHORT_TITLES, &labels).filter(|title| is_type(title));
    let identity = identity::identity(value);
    let member = fingerprint::member_of_key("json", &identity.key);
    let mut outline = Outline::default();
    outline.value(0, value);
    let judged = state::judge(&facts, found.as_deref(), received_at);
    let severity = severity::judge(&facts);
    let notes = std::iter::once(Note::Unrecognised).chain(judged.notes).chain(severity.notes);
    let first_key = || value.as_object().and_then(|fields| fields.keys().next().cloned());
    Reading {
        source: "json".to_owned(),
        title: by_name
            .or(found)
            .or_else(|| fields.sentence())
            .or_else(first_key)
            .unwrap_or_else(|| "JSON alert".to_owned()),
        severity: severity.severity,
        status: judged.status,
        fingerprint: Some(identity.key),
        members: vec![member],
        runbook_url: fields.first(&words::RUNBOOKS, &labels).or_else(|| fields.annotated_runbook()),
        name: name.or_else(of_title),
        text: outline.into_text(),
        annotations: fields.annotations(),
        labels,
        trace: judged.why.into_iter().chain(severity.why).chain(identity.trace).collect(),
        notes: notes.collect(),
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
