//! Finds the values of a body that may be part of its key, and the kind of object that each names.

use serde_json::Value;

use super::form;
use super::named::Named;
use super::words::{
    AREAS, AROUND, BESIDE, CONDITIONS, ID_ENDS, INCIDENTS, LABELS, MESSAGES, RESOURCES,
};
use crate::readable::text::beginning;
use crate::sources::{WordList, escaped_key, key_pieces, pieces};

const MAX_DEPTH: usize = 8;
const MAX_PARTS: usize = 512;
/// The limit of a longer text the beginning names the problem, in bytes. A key counts whole.
const MAX_TEXT_BYTES: usize = 1_024;

/// The class of object that a value names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// The sender's own key.
    Key,
    /// A value that may be the name of a resource.
    Soft,
    ConditionId,
    Condition,
    /// A word of what happened, without its state: `Upgrade` of `UpgradeFailed`.
    Reason,
    /// The same in a field that may say what happened to the alert.
    Event,
    /// The id of an incident, which is enough.
    Incident,
    /// The id of an alert, which may be that of its rule.
    Alert,
    Resource,
    /// A place that many resources share.
    Area,
    Label,
    /// `name` of nothing.
    Name,
    Title,
    Text,
    /// Any other value that looks like an id.
    Exact,
    Other,
}

/// A value of a body.
#[derive(Clone, Debug)]
pub(super) struct IdentityPart {
    pub(super) class: Class,
    /// The key with its object, whatever is around them.
    pub(super) word: String,
    pub(super) value: String,
    pub(super) pointer: String,
    /// The noun of the thing that an id identifies.
    pub(super) id_of: Option<String>,
    /// The noun of the thing that a name denotes.
    pub(super) name_of: Option<String>,
}

/// The position of a search.
#[derive(Clone, Debug)]
pub(super) struct ObjectScope {
    pointer: String,
    /// The noun of the object: `alertgroup`, `host`. Empty if it only surrounds others.
    pub(super) noun: String,
    in_labels: bool,
    depth: usize,
}

/// All parts of a body.
pub(super) fn parts(value: &Value) -> Vec<IdentityPart> {
    let mut found = Vec::new();
    let place = ObjectScope {
        pointer: String::new(),
        noun: String::new(),
        in_labels: false,
        depth: 0,
    };
    walk(value, &place, &mut found);
    found
}

fn walk(value: &Value, place: &ObjectScope, found: &mut Vec<IdentityPart>) {
    if place.depth > MAX_DEPTH || found.len() >= MAX_PARTS {
        return;
    }
    match value {
        Value::Object(fields) => {
            // The name of an event of Kubernetes is another one at each time.
            let is_event =
                fields.contains_key("involvedObject") || fields.contains_key("regarding");
            for (key, value) in fields
                .iter()
                .filter(|(key, _)| !is_event || *key != "metadata")
            {
                field(key, value, place, found);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                element(item, at, items.len(), place, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn field(key: &str, value: &Value, place: &ObjectScope, found: &mut Vec<IdentityPart>) {
    let key_pieces = key_pieces(key);
    let pointer = format!("{}/{}", place.pointer, escaped_key(key));
    match value {
        Value::Object(_) | Value::Array(_) => {
            if let Some(below) = below(&key_pieces, value, place) {
                let place = ObjectScope {
                    pointer,
                    depth: place.depth + 1,
                    ..below
                };
                walk_list_of_scalars(&key_pieces, value, &place, found);
                walk(value, &place, found);
            }
        }
        Value::String(_) | Value::Number(_) => {
            found.extend(part(
                &key_pieces,
                value,
                &ObjectScope {
                    pointer,
                    ..place.clone()
                },
            ));
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// `hosts: [db-3]` are values of `hosts`, and `tags: [env:prod]` has a value of `env`.
fn walk_list_of_scalars(
    key: &[String],
    value: &Value,
    place: &ObjectScope,
    found: &mut Vec<IdentityPart>,
) {
    for item in value
        .as_array()
        .into_iter()
        .flatten()
        .filter(|item| item.is_string())
    {
        let text = item.as_str().unwrap_or_default();
        match text.split_once([':', '=']) {
            Some((name, value)) if place.in_labels => {
                found.extend(part(&key_pieces(name), &Value::from(value), place))
            }
            Some(_) | None => found.extend(part(key, item, place)),
        }
    }
}

/// The parts of an element of a list. A pair of a name and a value is a label. An object counts if it is the only one,
/// because a list of several has what was measured.
fn element(
    item: &Value,
    at: usize,
    count: usize,
    place: &ObjectScope,
    found: &mut Vec<IdentityPart>,
) {
    let Some(fields) = item.as_object() else {
        return;
    };
    let place = ObjectScope {
        pointer: format!("{}/{at}", place.pointer),
        depth: place.depth + 1,
        ..place.clone()
    };
    let named = ["name", "key", "title", "tag", "label"]
        .iter()
        .find_map(|key| fields.get(*key)?.as_str());
    if let (Some(name), Some(value @ (Value::String(_) | Value::Number(_)))) =
        (named, fields.get("value"))
    {
        let pointer = format!("{}/value", place.pointer);
        found.extend(part(
            &key_pieces(name),
            value,
            &ObjectScope {
                pointer,
                in_labels: true,
                ..place
            },
        ));
    } else if count == 1 || place.in_labels {
        walk(item, &place, found);
    }
}

/// The place of an object with this key; `None` for one that names nothing.
fn below(key: &[String], value: &Value, place: &ObjectScope) -> Option<ObjectScope> {
    let pieces: Vec<&str> = key.iter().map(String::as_str).collect();
    let last = pieces.last().copied().unwrap_or_default();
    if LABELS.contains(pieces.concat().as_str()) || LABELS.contains(last) {
        return Some(ObjectScope {
            in_labels: true,
            noun: String::new(),
            ..place.clone()
        });
    }
    let is_state =
        WordList::new("status state severity priority urgency conditions").contains(last);
    // `result_groups` are what was measured.
    let is_measured = pieces.len() > 1 && matches!(pieces.first(), Some(&"result" | &"results"));
    // An object with others in it is more than a state.
    let is_flat = value
        .as_object()
        .is_none_or(|fields| fields.values().all(|value| !value.is_object()));
    if pieces.iter().any(|piece| BESIDE.contains(piece)) || is_state && is_flat || is_measured {
        return None;
    }
    Some(ObjectScope {
        noun: noun_of(&pieces, place),
        ..place.clone()
    })
}

/// The noun of an object, the last piece of its key that is one: `incident` of `public_incident.incident_created_v2`.
fn noun_of(pieces: &[&str], place: &ObjectScope) -> String {
    if let [.., "alert" | "incident", "group"] = pieces {
        return "alertgroup".to_owned();
    }
    // `component_update` is a message about a component.
    if let [.., last] = pieces
        && MESSAGES.contains(last)
        && !AROUND.contains(last)
    {
        return (*last).to_owned();
    }
    match pieces.iter().rev().find(|piece: &&&str| is_noun(piece)) {
        Some(noun) if !AROUND.contains(noun) => (*noun).to_owned(),
        Some(_) => place.noun.clone(),
        None if pieces.is_empty() => place.noun.clone(),
        None => pieces.concat(),
    }
}

fn is_noun(piece: &str) -> bool {
    [CONDITIONS, RESOURCES, AREAS, AROUND, INCIDENTS]
        .iter()
        .any(|nouns| nouns.contains(piece))
}

fn part(key: &[String], value: &Value, place: &ObjectScope) -> Option<IdentityPart> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    let key: Vec<&str> = key.iter().map(String::as_str).collect();
    let named = Named {
        word: key.concat(),
        key: &key,
        place,
        is_number: value.is_number() || text.parse::<f64>().is_ok(),
    };
    let beginning = beginning(&text, MAX_TEXT_BYTES);
    let class = if place.in_labels {
        named.of_label()?
    } else {
        named.class(beginning)?
    };
    let text = if class == Class::Key {
        text
    } else {
        beginning.to_owned()
    };
    let value = match class {
        Class::Title | Class::Name => form::title(&text)?,
        Class::Condition => form::condition(&text)?,
        // JSON and markup in a text have what was measured.
        Class::Text if text.starts_with(['{', '[', '<', '&']) => return None,
        Class::Text => form::title(&text).or_else(|| form::stable_text(&text))?,
        Class::Reason => reason(&text)?,
        Class::Event => event(&text)?,
        Class::Other if text.contains(char::is_whitespace) => {
            form::title(&text).and_then(|text| form::name(&text))?
        }
        Class::Key | Class::Soft => text.clone(),
        Class::ConditionId
        | Class::Incident
        | Class::Alert
        | Class::Resource
        | Class::Area
        | Class::Label
        | Class::Exact
        | Class::Other => form::name(&text)?,
    };
    let value = Some(value).filter(|value| !value.is_empty() && value != "0" && value != "-1")?;
    if class == Class::Other && form::is_all_state(&text) {
        return None;
    }
    let class = if class == Class::Other {
        class_of_form(&text)
    } else {
        class
    };
    let stem = named.stem();
    let is_id = ID_ENDS.contains(named.last()) && !place.in_labels;
    let is_name = !place.in_labels
        && key
            .iter()
            .any(|piece| ["name", "display", "title"].contains(piece));
    Some(IdentityPart {
        class,
        word: named.full_word(),
        value,
        pointer: place.pointer.clone(),
        id_of: if is_id { stem.clone() } else { None },
        name_of: if is_name && !is_id { stem } else { None },
    })
}

/// The same of an event, unless it is about the alert and not about its problem: `incident_reassigned`.
fn event(text: &str) -> Option<String> {
    const OF_ALERTS: WordList = WordList::new(
        "incident alert alarm issue problem ticket case notification item occurrence repeat repeated reactivated",
    );
    let is_lifecycle = pieces(text).iter().any(|piece| OF_ALERTS.contains(piece));
    if is_lifecycle { None } else { reason(text) }
}

/// The class of a value whose key says nothing.
fn class_of_form(text: &str) -> Class {
    if form::is_sentence(text) {
        Class::Text
    } else if form::is_exact(text) {
        Class::Exact
    } else {
        Class::Other
    }
}

/// The pieces of a word of what happened, without its states.
fn reason(text: &str) -> Option<String> {
    let pieces = pieces(text);
    let kept: Vec<String> = pieces
        .into_iter()
        .filter(|piece: &String| {
            form::title(piece).is_some() && !["not", "item", "group"].contains(&piece.as_str())
        })
        .collect();
    (!kept.is_empty()).then(|| kept.join(" "))
}
