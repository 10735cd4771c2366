//! The values of a body of no known form, each with its place and the pieces of its key.

use serde_json::{Map, Value};

use crate::sources::{WordList, escaped_key, key_pieces, parse_time};

/// Deeper objects are not read.
const MAX_DEPTH: usize = 7;
const MAX_FACTS: usize = 1_024;
/// Objects around the fields of an alert, and objects that are an alert.
const ENVELOPES: WordList = WordList::new(
    "data event incident alert payload body content detail details notification problem issue alarm check monitor \
     attributes message trigger result heartbeat ticket record",
);
/// Objects about people, places of chats, and the past.
const BESIDE: WordList = WordList::new(
    "user users author actor agent assignee owner team organization organisation page sender integration links \
     history previous old last before prior",
);
/// Fields with a name, in a list of pairs.
const NAMES: [&str; 5] = ["name", "key", "title", "label", "tag"];

/// The distance of a value from the alert itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// The body, or an object that is the alert.
    Own,
    Inner,
    /// A payload that the sender has received itself: `alert_payload`.
    Original,
    /// A value about people or the past.
    Beside,
}

/// A text, number or bool of a body.
#[derive(Clone, Debug)]
pub(super) struct Fact<'v> {
    pub(super) pointer: String,
    /// The pieces of its key.
    pub(super) key: Vec<String>,
    /// The pieces of the key of the object around it.
    pub(super) owner: Vec<String>,
    /// The object that has the field, for the fields next to it.
    pub(super) object: &'v Map<String, Value>,
    pub(super) value: &'v Value,
    pub(super) rank: Rank,
}

impl Fact<'_> {
    /// `resolvedat` for `resolved_at`.
    pub(super) fn word(&self) -> String {
        self.key.concat()
    }

    pub(super) fn text(&self) -> Option<&str> {
        self.value
            .as_str()
            .map(str::trim)
            .filter(|text| !text.is_empty())
    }

    /// The text, or the value as JSON.
    pub(super) fn written(&self) -> String {
        self.text()
            .map_or_else(|| self.value.to_string(), str::to_owned)
    }

    pub(super) fn last(&self) -> &str {
        self.key.last().map(String::as_str).unwrap_or_default()
    }

    /// `true`, `"true"` and `"yes"`, and their opposites.
    pub(super) fn flag(&self) -> Option<bool> {
        self.value
            .as_bool()
            .or_else(|| match self.text()?.to_lowercase().as_str() {
                "true" | "yes" => Some(true),
                "false" | "no" => Some(false),
                _ => None,
            })
    }

    /// A number, also in a text.
    pub(super) fn number(&self) -> Option<f64> {
        self.value.as_f64().or_else(|| {
            let text = self.text().filter(|text| parse_time(text).is_none())?;
            text.parse().ok()
        })
    }
}

/// The position of a search.
struct ObjectPath {
    pointer: String,
    owner: Vec<String>,
    depth: usize,
    rank: Rank,
}

/// The values of a body, those of the alert itself first.
pub(super) fn facts(body: &Value) -> Vec<Fact<'_>> {
    let mut found = Vec::new();
    let place = ObjectPath {
        pointer: String::new(),
        owner: Vec::new(),
        depth: 0,
        rank: Rank::Own,
    };
    collect(body, &place, &mut found);
    found.sort_by_key(|fact| fact.rank);
    found
}

/// The first title further in, as in an attachment of a chat.
pub(super) fn title(facts: &[Fact<'_>]) -> Option<String> {
    facts
        .iter()
        .filter(|fact| fact.rank < Rank::Beside)
        .filter(|fact: &&Fact<'_>| {
            matches!(
                fact.last(),
                "title" | "summary" | "subject" | "headline" | "pretext"
            )
        })
        .find_map(|fact| fact.text())
        .map(str::to_owned)
}

fn collect<'v>(value: &'v Value, place: &ObjectPath, found: &mut Vec<Fact<'v>>) {
    if place.depth > MAX_DEPTH || found.len() >= MAX_FACTS {
        return;
    }
    match value {
        Value::Object(fields) => of_object(fields, place, found),
        Value::Array(items) => of_list(items, place, found),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn of_object<'v>(fields: &'v Map<String, Value>, place: &ObjectPath, found: &mut Vec<Fact<'v>>) {
    for (key, value) in fields {
        let pointer = format!("{}/{}", place.pointer, escaped_key(key));
        let pieces = key_pieces(key);
        match value {
            Value::Null => {}
            Value::Object(_) | Value::Array(_) => {
                // incident.io names the object after the type of the event.
                let is_named = fields
                    .values()
                    .any(|other| other.as_str() == Some(key.as_str()));
                let rank = if is_named || fields.len() == 1 {
                    place.rank
                } else {
                    below(&pieces, place.rank)
                };
                collect(
                    value,
                    &ObjectPath {
                        pointer,
                        owner: pieces,
                        depth: place.depth + 1,
                        rank,
                    },
                    found,
                );
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) if found.len() < MAX_FACTS => {
                found.push(Fact {
                    pointer,
                    key: pieces,
                    owner: place.owner.clone(),
                    object: fields,
                    value,
                    rank: place.rank,
                })
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// A list of one object is that object, and a list of pairs has a value for each name.
fn of_list<'v>(items: &'v [Value], place: &ObjectPath, found: &mut Vec<Fact<'v>>) {
    let pairs: Vec<Fact<'v>> = items
        .iter()
        .enumerate()
        .filter_map(|(at, item)| pair(item, at, place))
        .collect();
    if pairs.len() == items.len() {
        found.extend(pairs);
    } else if let [only @ Value::Object(_)] = items {
        let pointer = format!("{}/0", place.pointer);
        let place = ObjectPath {
            pointer,
            owner: place.owner.clone(),
            depth: place.depth + 1,
            rank: place.rank,
        };
        collect(only, &place, found);
    }
}

/// `{"name": "severity", "value": "critical"}`.
fn pair<'v>(item: &'v Value, at: usize, place: &ObjectPath) -> Option<Fact<'v>> {
    let fields = item.as_object()?;
    let name = fields
        .iter()
        .filter(|(key, _)| is_name(key))
        .find_map(|(_, value)| value.as_str())?;
    let (key, value) = fields
        .iter()
        .find(|(key, _)| matches!(key.to_lowercase().as_str(), "value" | "val"))?;
    let is_scalar = value.is_string() || value.is_number() || value.is_boolean();
    is_scalar.then(|| Fact {
        pointer: format!("{}/{at}/{key}", place.pointer),
        key: key_pieces(name),
        owner: place.owner.clone(),
        object: fields,
        value,
        rank: place.rank,
    })
}

fn is_name(key: &str) -> bool {
    NAMES.contains(&key.to_lowercase().as_str())
}

/// The rank of an object with this key.
fn below(key: &[String], rank: Rank) -> Rank {
    const OF_STATE: [&str; 7] = [
        "status", "state", "severity", "priority", "urgency", "new", "current",
    ];
    let pieces: Vec<&str> = key.iter().map(String::as_str).collect();
    let own = match pieces.as_slice() {
        [.., "payload" | "raw" | "source" | "body"] if pieces.len() > 1 => Rank::Original,
        ["raw" | "original" | "source", ..] => Rank::Original,
        _ if pieces.iter().any(|piece| BESIDE.contains(piece)) => Rank::Beside,
        _ if pieces.iter().any(|piece| OF_STATE.contains(piece)) => rank,
        [.., last] if ENVELOPES.contains(last) || is_group(&pieces) => rank,
        _ => Rank::Inner,
    };
    own.max(rank)
}

/// Whether the object of a key is the alert itself, or surrounds it.
pub(super) fn is_envelope(key: &str) -> bool {
    matches!(key_pieces(key).as_slice(), [only] if ENVELOPES.contains(only))
}

/// Whether a key names an alert in two words: `alert_group`.
fn is_group(pieces: &[&str]) -> bool {
    matches!(
        pieces,
        [
            "alert" | "alarm" | "incident",
            "group" | "instance" | "info"
        ]
    )
}
