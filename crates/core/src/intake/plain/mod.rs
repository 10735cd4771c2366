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
mod text;
mod times;
mod title_mark;
mod words;

pub(super) use self::text::{read_text, text_key};

use std::borrow::Cow;
use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use self::facts::Fact;
use self::fields::Fields;
use self::kubernetes::Event;
use super::batch::Urgency;
use super::outline::Outline;
use super::reading::ParsedBody;
use super::webhook::Given;
use super::{fingerprint, identity, subject, webhook};
use crate::sources::{Note, Traced};

/// A judgement about the fields of a body, with its reason.
#[derive(Debug, Default)]
struct Verdict<T> {
    value: T,
    why: Option<Traced>,
    notes: Vec<Note>,
}

/// A longer title is a sentence and no type.
const MAX_TYPE_CHARS: usize = 80;

/// JSON that is no known webhook: one alert, or each of its list.
pub(super) fn read_all(value: &Value, received_at: Option<DateTime<Utc>>) -> Vec<ParsedBody> {
    let opened = opened(value);
    let value = opened.as_ref();
    let Some(elements) = list::elements(value) else {
        return vec![read_json(value, received_at)];
    };
    elements
        .iter()
        .filter(|element: &&Value| element.as_object().is_some_and(|fields| !fields.is_empty()))
        .map(|element| read_json(element, received_at))
        .collect()
}

/// The body with the JSON objects in texts that are its alert: `{"topic": "ops", "message": "{\"host\": \"db-1\"}"}`.
fn opened(value: &Value) -> Cow<'_, Value> {
    let fields = value.as_object().into_iter().flatten();
    let inner: Vec<(String, Value)> = fields
        .filter(|(key, _)| facts::is_envelope(key))
        .filter_map(|(key, value)| Some((key.clone(), parsed_object(value.as_str()?)?)))
        .collect();
    if inner.is_empty() {
        return Cow::Borrowed(value);
    }
    let mut value = value.clone();
    if let Some(fields) = value.as_object_mut() {
        fields.extend(inner);
    }
    value.sort_all_objects();
    Cow::Owned(value)
}

fn parsed_object(text: &str) -> Option<Value> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// The urgency of a body's alert, as far as the names of its fields tell.
pub(super) fn urgency(value: &Value, received_at: Option<DateTime<Utc>>) -> Urgency {
    let facts = facts::facts(value);
    let status = state::judge(&facts, None, received_at).value;
    Urgency::new(status, severity::judge(&facts).value.unwrap_or_default())
}

/// The same of an element of a list: an alert with labels, a group of such alerts, or JSON of any form.
pub(super) fn urgency_of_element(value: &Value, given: Given) -> Urgency {
    webhook::urgency(value, given).unwrap_or_else(|| urgency(value, given.received_at))
}

/// JSON that is one alert of no known form.
pub(super) fn read_json(value: &Value, received_at: Option<DateTime<Utc>>) -> ParsedBody {
    let fields = Fields::new(value);
    let facts = facts::facts(value);
    let labels = fields.labels();
    let event = fields.own().find_map(Event::parse);
    let name = event
        .as_ref()
        .map(|event| event.reason.clone())
        .or_else(|| fields.name(&labels));
    let by_name = name.as_deref().map(|name| {
        let place = match &event {
            Some(event) => event.place.clone(),
            None => fields.place(name, &labels),
        };
        subject::title(name, &place)
    });
    let found = fields
        .first(&words::TITLES, &labels)
        .or_else(|| facts::title(&facts));
    let alert_type = name.or_else(|| {
        fields
            .first(&words::SHORT_TITLES, &labels)
            .filter(|title| is_type(title))
    });
    let identity = identity::identity(value);
    let member = fingerprint::member_of_key("json", &identity.key);
    let mut outline = Outline::default();
    outline.value(0, value);
    let judged = state::judge(&facts, found.as_deref(), received_at);
    let severity = severity::judge(&facts);
    let notes = std::iter::once(Note::Unrecognised)
        .chain(judged.notes)
        .chain(severity.notes);
    let title = by_name
        .clone()
        .or(found)
        .or_else(|| fields.sentence())
        .or_else(|| {
            value
                .as_object()
                .and_then(|fields| fields.keys().next().cloned())
        })
        .unwrap_or_else(|| "JSON alert".to_owned());
    let titled = match by_name {
        Some(by_name) => Traced::rule(
            "title",
            by_name,
            "it is the type, and the object that is named beside it",
        ),
        None => traced("title", &title, &facts),
    };
    let typed = alert_type.as_ref().map(|name| traced("type", name, &facts));
    ParsedBody {
        source: "json".to_owned(),
        title,
        severity: severity.value,
        status: judged.value,
        fingerprint: Some(identity.key),
        members: vec![member],
        runbook_url: fields
            .first(&words::RUNBOOKS, &labels)
            .or_else(|| fields.annotated_runbook()),
        name: alert_type,
        text: outline.into_text(),
        annotations: fields.annotations(),
        labels,
        trace: judged
            .why
            .into_iter()
            .chain(severity.why)
            .chain(identity.trace)
            .chain(typed)
            .chain([titled])
            .collect(),
        notes: notes.collect(),
        ..ParsedBody::default()
    }
}

/// A text with its place in the body.
fn traced(field: &'static str, text: &str, facts: &[Fact<'_>]) -> Traced {
    match facts.iter().find(|fact| fact.text() == Some(text.trim())) {
        Some(fact) => Traced::text(field, &fact.pointer, text),
        None => Traced::rule(field, text, "it is the first name in the body"),
    }
}

fn is_type(title: &str) -> bool {
    title.chars().count() <= MAX_TYPE_CHARS && !title.contains('\n')
}

/// The runbook that labels or annotations name.
pub(super) fn runbook(pairs: &BTreeMap<String, String>) -> Option<String> {
    ["runbook_url", "runbook"]
        .iter()
        .find_map(|key| pairs.get(*key).cloned())
}

/// The text of a field, if it is not empty.
pub(super) fn text(fields: &Map<String, Value>, key: &str) -> Option<String> {
    fields
        .get(key)
        .and_then(Value::as_str)
        .filter(|text| !text.trim().is_empty())
        .map(str::to_owned)
}

/// The fields of an object as texts; other values as JSON.
pub(super) fn pairs(value: Option<&Value>) -> BTreeMap<String, String> {
    let pairs = value.and_then(Value::as_object).into_iter().flatten();
    pairs
        .map(|(key, value)| {
            (
                key.clone(),
                value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned),
            )
        })
        .collect()
}
