//! The pieces of JSON: the elements of a list, and the fields of an object, as text.

use std::fmt;

use serde::de::{Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Deserializer, Map};

use crate::alert::AlertStatus;
use crate::intake::webhook;

/// More elements of a list are only counted: a list of single numbers would need more memory than its text.
const MAX_MEMBERS: usize = 200_000;

/// The list of a group of alerts, and the status of the group.
const ALERTS: &str = "alerts";
const STATUS: &str = "status";

/// A member of a JSON object, with its value as text.
#[derive(Clone, Debug)]
pub(super) struct ObjectField<'t> {
    pub(super) key: String,
    pub(super) value: &'t str,
}

impl ObjectField<'_> {
    /// Whether it may be the list of a group of alerts.
    pub(super) fn has_alerts(&self) -> bool {
        self.key == ALERTS
    }
}

/// A member that is looked into.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemberPart<'t> {
    pub(super) json: &'t str,
    /// The status of the group whose list this is.
    pub(super) group: Option<AlertStatus>,
}

/// The members of a value.
#[derive(Debug)]
pub(super) enum Members<'t> {
    List {
        elements: Vec<&'t str>,
        /// Further ones.
        unread: usize,
    },
    Object(Vec<ObjectField<'t>>),
    /// A text in quotes.
    Text,
    Other,
}

impl<'t> Members<'t> {
    /// The members of a JSON value without white space around it.
    pub(super) fn new(json: &'t str) -> Self {
        let mut reader = Deserializer::from_str(json);
        match json.as_bytes().first() {
            Some(b'"') => Self::Text,
            Some(b'[' | b'{') => reader.deserialize_any(MemberReader).unwrap_or(Self::Other),
            Some(_) | None => Self::Other,
        }
    }

    /// The member that has at least half of so many bytes.
    pub(super) fn half_of(&self, bytes: usize) -> Option<MemberPart<'t>> {
        let largest = match self {
            Self::List { elements, .. } => {
                let largest = elements.iter().copied().max_by_key(|element| element.len());
                largest.map(|json| MemberPart { json, group: None })
            }
            Self::Object(fields) => {
                let largest = fields.iter().max_by_key(|field| field.value.len());
                largest.map(|field| MemberPart {
                    json: field.value,
                    group: if field.has_alerts() {
                        status_of(fields)
                    } else {
                        None
                    },
                })
            }
            Self::Text | Self::Other => None,
        };
        largest.filter(|largest| largest.json.len() * 2 >= bytes)
    }
}

/// The status of a group with these fields. Of fields with one key the last counts, as where JSON is read.
pub(super) fn status_of(fields: &[ObjectField<'_>]) -> Option<AlertStatus> {
    let status = fields.iter().rfind(|field| field.key == STATUS)?;
    let value = serde_json::from_str(status.value).ok()?;
    webhook::status_of(&Map::from_iter([(STATUS.to_owned(), value)]))
}

struct MemberReader;

impl<'t> Visitor<'t> for MemberReader {
    type Value = Members<'t>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list or an object")
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        let mut unread = 0;

        while elements.len() < MAX_MEMBERS {
            let Some(element) = list.next_element::<&RawValue>()? else {
                return Ok(Members::List { elements, unread });
            };
            elements.push(element.get());
        }
        while list.next_element::<IgnoredAny>()?.is_some() {
            unread += 1;
        }
        Ok(Members::List { elements, unread })
    }

    fn visit_map<A: MapAccess<'t>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(key) = object.next_key::<String>()? {
            let value = object.next_value::<&RawValue>()?.get();
            if fields.len() < MAX_MEMBERS {
                fields.push(ObjectField { key, value });
            }
        }
        Ok(Members::Object(fields))
    }
}

/// The text before and after a part of it.
pub(super) fn around<'t>(text: &'t str, part: &str) -> (&'t str, &'t str) {
    let start = part.as_ptr().addr().saturating_sub(text.as_ptr().addr());
    (
        text.get(..start).unwrap_or_default(),
        text.get(start + part.len()..).unwrap_or_default(),
    )
}
