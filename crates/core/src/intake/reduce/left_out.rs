//! Describes the elements of a list that were left out: their number, their names, and the values of their labels.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::intake::batch::Urgency;
use crate::intake::{clean, plain};
use crate::sources::{Repair, WordList};

/// The fields with the name of an alert.
const NAMES: WordList =
    WordList::new("alertname name title rule check monitor summary message msg");
const NO_NAME: &str = "without a name";
/// More different names, labels, and values of a label are counted together.
const MAX_NAMES: usize = 1_000;
const MAX_LABELS: usize = 24;
const MAX_VALUES: usize = 200;
/// The number of names in the note.
const SHOWN_NAMES: usize = 20;
const SHOWN_LABELS: usize = 6;
const SHOWN_VALUES: usize = 5;
const MAX_CHARS: usize = 80;
/// The limit of a note, in characters. Headers count towards the size of a message.
const MAX_NOTE_CHARS: usize = 3_000;
const MAX_NOTES: usize = 12;

/// The parts that a reduced body lacks. It is stored with the alert as the header `Tarsy-Left-Out`, in JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The number of firing alerts of the list that were left out.
    #[serde(default)]
    pub firing: u64,
    /// Sentences for the text of the alert.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The key of the whole body, where the reduced one has another. Of the only alert of the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl LeftOut {
    /// Parses the value of a header. Any other text counts as none.
    pub fn parse(header: &str) -> Option<Self> {
        let Self { firing, notes, key } = serde_json::from_str(header).ok()?;
        let notes = notes
            .iter()
            .take(MAX_NOTES)
            .map(|note| clean::line(note, MAX_NOTE_CHARS))
            .collect();
        Some(Self { firing, notes, key })
    }

    /// The value of the header; `None` if there is nothing to say.
    pub fn header(&self) -> Option<String> {
        if *self == Self::default() {
            None
        } else {
            serde_json::to_string(self).ok()
        }
    }
}

/// Counts while a body is reduced.
#[derive(Debug, Default)]
pub(super) struct Counter {
    count: usize,
    firing: usize,
    by_name: Counts,
    by_label: BTreeMap<String, Counts>,
    /// Elements that were not looked at, because there are too many.
    pub(super) unread: usize,
    /// Fields of objects.
    pub(super) fields: usize,
    /// Texts, or elements of elements.
    pub(super) is_cut: bool,
}

#[derive(Debug, Default)]
struct Counts {
    by_text: BTreeMap<String, usize>,
    others: usize,
}

impl Counts {
    fn add(&mut self, text: String, max: usize) {
        if self.by_text.len() < max || self.by_text.contains_key(&text) {
            *self.by_text.entry(text).or_default() += 1;
        } else {
            self.others += 1;
        }
    }

    /// The most frequent first, as `shown` writes them, then how many there are of others.
    fn list(&self, max: usize, shown: impl Fn(&str, usize) -> String) -> String {
        let mut counts: Vec<(&String, &usize)> = self.by_text.iter().collect();
        counts.sort_by_key(|(text, count)| (Reverse(**count), *text));
        let others: usize = counts
            .iter()
            .skip(max)
            .map(|(_, count)| **count)
            .sum::<usize>()
            + self.others;
        let mut listed: Vec<String> = counts
            .iter()
            .take(max)
            .map(|(text, count)| shown(text, **count))
            .collect();
        if others > 0 {
            listed.push(format!("{others} others"));
        }
        listed.join(", ")
    }
}

impl Counter {
    pub(super) fn add(&mut self, value: &Value, urgency: Urgency) {
        self.count += 1;
        self.firing += usize::from(urgency.is_firing());
        let labels = labels(value).unwrap_or_default();
        let named = NAMES.iter().find_map(|key| {
            let label = labels.get(key).map(String::as_str);
            label.or_else(|| value.get(key)?.as_str())
        });
        let name = named.or_else(|| value.as_str());
        let name = name.map_or_else(|| NO_NAME.to_owned(), |name| clean::line(name, MAX_CHARS));
        self.by_name.add(name, MAX_NAMES);
        for (key, value) in labels.into_iter().filter(|(key, _)| key != "alertname") {
            if self.by_label.len() < MAX_LABELS || self.by_label.contains_key(&key) {
                self.by_label
                    .entry(key)
                    .or_default()
                    .add(clean::line(&value, MAX_CHARS), MAX_VALUES);
            }
        }
    }

    /// The notes about a text of so many bytes.
    pub(super) fn finish(&self, bytes: usize, repairs: &[Repair]) -> LeftOut {
        let mut notes: Vec<String> = Vec::new();
        if self.count > 0 {
            notes.push(clean::line(&self.note(), MAX_NOTE_CHARS));
        }
        if self.unread > 0 {
            notes.push(format!(
                "{} further elements of a list are neither shown nor counted",
                self.unread
            ));
        }
        if self.is_cut || self.fields > 0 {
            let fields = if self.fields > 0 {
                format!(" and {} fields left out", self.fields)
            } else {
                String::new()
            };
            notes.push(format!(
                "the message had {bytes} bytes: long texts in it were cut{fields}"
            ));
        }
        notes.extend(repairs.iter().map(ToString::to_string));
        LeftOut {
            firing: u64::try_from(self.firing).unwrap_or(u64::MAX),
            notes,
            key: None,
        }
    }

    /// A sentence about the elements, with the values of the labels that repeat.
    fn note(&self) -> String {
        let Self { count, firing, .. } = self;
        let names = self
            .by_name
            .list(SHOWN_NAMES, |name, count| format!("{name} ({count})"));
        let mut note = format!(
            "{count} more of this message, {firing} of them firing, are only counted: {names}"
        );
        let by_label = self
            .by_label
            .iter()
            .filter(|(_, counts)| counts.others == 0 && counts.by_text.len() <= (count / 2).max(1))
            .take(SHOWN_LABELS);
        for (label, counts) in by_label {
            let label = clean::line(label, MAX_CHARS);
            // As an assignment the value of a secret is masked.
            note.push_str("; ");
            note.push_str(&counts.list(SHOWN_VALUES, |value, count| {
                format!("{label}={value} ({count})")
            }));
        }
        note
    }
}

/// The labels of an element that has some.
pub(super) fn labels(value: &Value) -> Option<BTreeMap<String, String>> {
    let labels = value.get("labels").filter(|labels| labels.is_object())?;
    Some(plain::pairs(Some(labels)))
}
