//! Values of a body by the names of their keys, in any spelling.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{MAX_TYPE_CHARS, pairs, runbook, words};
use crate::intake::identity::plain;
use crate::sources::{WordList, parse_time};

/// Objects around the fields of an alert.
const ENVELOPES: [&str; 4] = ["data", "event", "incident", "alert"];
const MAX_ENVELOPES: usize = 4;
/// Objects below an envelope that are searched after it.
const MAX_OBJECTS: usize = 32;
/// Fields of an object that are searched.
const MAX_WORDS: usize = 512;

/// The objects of a body: first those in an envelope, from the innermost, then the objects in them.
pub(super) struct Fields<'v> {
    objects: Vec<Object<'v>>,
    /// The number of envelopes among them.
    envelopes: usize,
}

/// An object with the texts of its fields by their words.
struct Object<'v> {
    fields: &'v Map<String, Value>,
    texts: BTreeMap<String, &'v str>,
}

impl<'v> Object<'v> {
    fn new(fields: &'v Map<String, Value>) -> Self {
        let own = fields.iter().map(|(key, value)| (plain(key), value));
        let inner = fields
            .iter()
            .filter_map(|(key, value)| Some((plain(key), value.as_object()?)));
        let inner = inner.flat_map(|(owner, fields)| {
            fields
                .iter()
                .map(move |(key, value)| (format!("{owner}{}", plain(key)), value))
        });
        let mut texts = BTreeMap::new();
        for (word, value) in own.take(MAX_WORDS).chain(inner.take(MAX_WORDS)) {
            let Some(text) = value.as_str() else {
                continue;
            };
            // JSON in a text is a rule, and no name of it.
            let is_json = text.trim_start().starts_with(['{', '[']);
            if !is_json && !text.trim().is_empty() {
                texts.entry(word).or_insert(text);
            }
        }
        Self { fields, texts }
    }

    fn text(&self, word: &str) -> Option<String> {
        self.texts.get(word).map(|text| (*text).to_owned())
    }
}

impl<'v> Fields<'v> {
    pub(super) fn new(value: &'v Value) -> Self {
        let mut objects: Vec<&Map<String, Value>> = Vec::new();
        let mut next = only_item(value).as_object();
        while let Some(fields) = next
            && objects.len() < MAX_ENVELOPES
        {
            objects.insert(0, fields);
            next = inner(fields);
        }
        let envelopes = objects.len();
        let mut at = 0;
        while let Some(fields) = objects.get(at).copied()
            && objects.len() < MAX_OBJECTS
        {
            let below = fields
                .iter()
                .filter(|(key, _)| !matches!(key.as_str(), "labels" | "annotations"));
            let below: Vec<_> = below.filter_map(|(_, value)| value.as_object()).collect();
            for fields in below {
                if !objects.iter().any(|known| std::ptr::eq(*known, fields)) {
                    objects.push(fields);
                }
            }
            at += 1;
        }
        Self {
            objects: objects.into_iter().map(Object::new).collect(),
            envelopes,
        }
    }

    /// The objects of the envelopes.
    pub(super) fn own(&self) -> impl DoubleEndedIterator<Item = &'v Map<String, Value>> + '_ {
        self.enveloped().iter().map(|object| object.fields)
    }

    fn enveloped(&self) -> &[Object<'v>] {
        self.objects.get(..self.envelopes).unwrap_or_default()
    }

    pub(super) fn labels(&self) -> BTreeMap<String, String> {
        let labels = self.own().map(|fields| pairs(fields.get("labels")));
        labels
            .rev()
            .find(|labels| !labels.is_empty())
            .unwrap_or_default()
    }

    /// The annotations with the texts of the envelopes beside them.
    pub(super) fn annotations(&self) -> BTreeMap<String, String> {
        self.own()
            .flat_map(|fields: &'v Map<String, Value>| {
                pairs(fields.get("annotations"))
                    .into_iter()
                    .chain(texts(fields))
            })
            .collect()
    }

    /// The name of the rule or check. Beside a host, a service is the check.
    pub(super) fn name(&self, labels: &BTreeMap<String, String>) -> Option<String> {
        let of = |words: &WordList| {
            self.enveloped()
                .iter()
                .find_map(|object| words.iter().find_map(|word| object.text(word)))
        };
        let own = |words: &WordList| {
            self.enveloped()
                .last()
                .and_then(|top| words.iter().find_map(|word| top.text(word)))
        };
        if let Some(name) = self.first(&words::NAMES, labels) {
            let monitor = self
                .objects
                .iter()
                .find_map(|object| object.text("monitor"));
            // A monitor inside of a body that has a title is a part of what the title names.
            let is_part = own(&WordList::new("monitor")).is_none()
                && own(&words::SHORT_TITLES).is_some()
                && monitor.as_ref() == Some(&name);
            if !is_part {
                return Some(name);
            }
        }
        let is_check_of_host = of(&words::HOSTS).is_some() && of(&words::SHORT_TITLES).is_none();
        if is_check_of_host {
            of(&words::SERVICES)
        } else {
            None
        }
    }

    /// The labels, or the host of a body without any.
    pub(super) fn place(
        &self,
        name: &str,
        labels: &BTreeMap<String, String>,
    ) -> BTreeMap<String, String> {
        if !labels.is_empty() {
            return labels.clone();
        }
        let host = self
            .enveloped()
            .iter()
            .find_map(|object| words::HOSTS.iter().find_map(|word| object.text(word)));
        host.filter(|host| host != name)
            .map(|host| ("host".to_owned(), host))
            .into_iter()
            .collect()
    }

    /// The text of the first key that an object has; of an envelope before the labels, and then of any other object.
    pub(super) fn first(
        &self,
        keys: &WordList,
        labels: &BTreeMap<String, String>,
    ) -> Option<String> {
        let labels: BTreeMap<String, &String> = labels
            .iter()
            .map(|(key, value)| (plain(key), value))
            .collect();
        let found = self.enveloped().iter().find_map(|object: &Object<'_>| {
            keys.iter().find_map(|word| {
                object
                    .text(word)
                    .or_else(|| labels.get(word).map(|value| (*value).clone()))
            })
        });
        found
            .or_else(|| {
                self.objects
                    .iter()
                    .find_map(|object: &Object<'_>| keys.iter().find_map(|word| object.text(word)))
            })
            .filter(|text| !text.is_empty())
    }

    /// The first text of several words, for a body without any known key.
    pub(super) fn sentence(&self) -> Option<String> {
        let texts = self
            .objects
            .iter()
            .flat_map(|object| object.fields.values())
            .filter_map(Value::as_str);
        texts
            .filter(|text| parse_time(text).is_none())
            .find(|text: &&str| {
                let text = text.trim();
                text.contains(' ') && !text.contains('\n') && text.chars().count() <= MAX_TYPE_CHARS
            })
            .map(str::to_owned)
    }

    pub(super) fn annotated_runbook(&self) -> Option<String> {
        self.own()
            .find_map(|fields| runbook(&pairs(fields.get("annotations"))))
    }
}

fn texts(fields: &Map<String, Value>) -> impl Iterator<Item = (String, String)> + '_ {
    fields
        .iter()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
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
    let only = if fields.len() == 1 {
        fields.values().next()
    } else {
        None
    };
    let enveloped = ENVELOPES
        .iter()
        .find_map(|key| fields.get(*key)?.as_object());
    only.and_then(|value| only_item(value).as_object())
        .or(enveloped)
}
