//! The values of a body with the pointers to them, and the choice of one by the name of its key.

use serde_json::{Map, Value};

use crate::intake::identity;
use crate::sources::{WordList, escaped_key, parse_time, scalar};

/// Deeper objects are not searched.
const MAX_DEPTH: usize = 5;
const MAX_LEAVES: usize = 512;

/// A value of a body. Lists and objects are leaves, too, because labels are in them.
#[derive(Clone, Debug)]
pub(super) struct Leaf<'v> {
    /// The pointer as an expression has it: `/check/id`, or `@/id` in an element of a list.
    pub(super) pointer: String,
    /// The key as the body has it.
    pub(super) key: &'v str,
    /// The key in lower case without separators.
    pub(super) word: String,
    /// The word of the object around it, and this one.
    pub(super) owned: String,
    /// 1 for a field of the whole body.
    pub(super) depth: usize,
    pub(super) value: &'v Value,
}

/// The start of a search.
struct Parent<'a> {
    pointer: &'a str,
    owner: &'a str,
    depth: usize,
}

impl Leaf<'_> {
    /// A text that is not empty, a number or a bool.
    pub(super) fn scalar(&self) -> Option<String> {
        scalar(self.value)
    }

    /// A text for people: neither a time nor an address.
    pub(super) fn prose(&self) -> Option<&str> {
        let text = self.value.as_str()?.trim();
        (!text.is_empty() && parse_time(text).is_none() && !is_url(text)).then_some(text)
    }

    pub(super) fn is_url(&self) -> bool {
        self.value.as_str().is_some_and(is_url)
    }

    /// A time in a field that is named so, or one that is no plain number.
    pub(super) fn is_time(&self) -> bool {
        let Some(text) = self.scalar() else {
            return false;
        };
        let is_number = text.chars().all(|c| c.is_ascii_digit() || c == '.');
        parse_time(&text).is_some() && (!is_number || identity::is_time_key(self.key))
    }
}

/// All values below a body or an element, whose pointers begin with `base`.
pub(super) fn leaves<'v>(value: &'v Value, base: &str) -> Vec<Leaf<'v>> {
    let mut found = Vec::new();
    if let Some(fields) = value.as_object() {
        collect(
            fields,
            &Parent {
                pointer: base,
                owner: "",
                depth: 1,
            },
            &mut found,
        );
    }
    found
}

fn collect<'v>(fields: &'v Map<String, Value>, place: &Parent<'_>, found: &mut Vec<Leaf<'v>>) {
    for (key, value) in fields {
        if found.len() >= MAX_LEAVES {
            return;
        }
        let Some(token) = token(key) else { continue };
        let word = identity::plain(key);
        let pointer = format!("{}/{token}", place.pointer);
        let owned = format!("{}{word}", place.owner);
        found.push(Leaf {
            pointer: pointer.clone(),
            key,
            word: word.clone(),
            owned,
            depth: place.depth,
            value,
        });
        if let Some(below) = value.as_object()
            && place.depth < MAX_DEPTH
        {
            collect(
                below,
                &Parent {
                    pointer: &pointer,
                    owner: &word,
                    depth: place.depth + 1,
                },
                found,
            );
        }
    }
}

/// The key in a pointer. Some characters have no place in an expression.
pub(super) fn token(key: &str) -> Option<String> {
    let has_place = !key.trim().is_empty()
        && key.trim() == key
        && !key.contains(['|', '{', '}', '"'])
        && !key.chars().any(char::is_control);
    has_place.then(|| escaped_key(key))
}

/// The leaves whose key is one of the words, the best first: an earlier word before a later one, and a field of the
/// body before one of an inner object.
pub(super) fn ranked<'l, 'v>(leaves: &'l [Leaf<'v>], words: &WordList) -> Vec<&'l Leaf<'v>> {
    let rank = |leaf: &Leaf<'_>| {
        let place = words
            .iter()
            .position(|word| leaf.word == word || leaf.owned == word)?;
        Some(place + 2 * leaf.depth)
    };
    let mut found: Vec<_> = leaves
        .iter()
        .filter_map(|leaf| Some((rank(leaf)?, leaf)))
        .collect();
    found.sort_by_key(|(rank, _)| *rank);
    found.into_iter().map(|(_, leaf)| leaf).collect()
}

fn is_url(text: &str) -> bool {
    let text = text.trim();
    (text.starts_with("https://") || text.starts_with("http://"))
        && !text.contains(char::is_whitespace)
}
