//! The JSON in a text without parsing it into values, for bodies that are too large for that: by the rules of `json`.

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Deserializer, Value};

use super::{json, note, repair};
use crate::readable::text::beginning;
use crate::sources::Repair;

/// Further values are only counted.
const MAX_VALUES: usize = 200_000;

/// The limit of a text that is repaired, in bytes.
const MAX_REPAIRED_BYTES: usize = 16 * 1024 * 1024;

/// Several values of one text, one after the other or in lines.
#[derive(Debug, Default)]
pub(in crate::intake) struct Values<'t> {
    pub(in crate::intake) texts: Vec<Cow<'t, str>>,
    pub(in crate::intake) unread: usize,
}

impl<'t> Values<'t> {
    fn push(&mut self, text: Cow<'t, str>) {
        if self.texts.len() < MAX_VALUES {
            self.texts.push(text);
        } else {
            self.unread += 1;
        }
    }
}

/// The text without the white space and marks around it.
pub(in crate::intake) fn trimmed(text: &str) -> &str {
    text.trim_matches(json::is_gap)
}

/// The text with its faults repaired: of a very long one the beginning, because a repair needs several times its
/// memory.
pub(in crate::intake) fn repaired(text: &str, repairs: &mut Vec<Repair>) -> Option<String> {
    let repaired = repair::repair(beginning(text, MAX_REPAIRED_BYTES))?;
    serde_json::from_str::<&RawValue>(&repaired.json).ok()?;
    repaired
        .repairs
        .into_iter()
        .for_each(|repair| note(repairs, repair));
    Some(repaired.json)
}

/// Several objects or lists; of lines at least two are objects, and one with a fault costs only itself.
pub(in crate::intake) fn values<'t>(
    text: &'t str,
    repairs: &mut Vec<Repair>,
) -> Option<Values<'t>> {
    sequence(text).or_else(|| lines(text, repairs))
}

fn sequence(text: &str) -> Option<Values<'_>> {
    let mut values = Values::default();
    let parts = text
        .split('\u{1e}')
        .map(trimmed)
        .filter(|part| !part.is_empty());
    for part in parts {
        for value in Deserializer::from_str(part).into_iter::<&RawValue>() {
            let value = value
                .ok()
                .map(RawValue::get)
                .filter(|value| value.starts_with(['{', '[']))?;
            values.push(Cow::Borrowed(value));
        }
    }
    (values.texts.len() > 1).then_some(values)
}

fn lines<'t>(text: &'t str, repairs: &mut Vec<Repair>) -> Option<Values<'t>> {
    let is_object =
        |line: &str| line.starts_with('{') && serde_json::from_str::<&RawValue>(line).is_ok();
    let lines = || {
        text.lines()
            .map(trimmed)
            .filter(|line| json::has_word(line))
    };
    // The lines of a list end with commas.
    let whole = |line: &'t str| line.strip_suffix(',').unwrap_or(line);
    if lines()
        .filter(|line| is_object(whole(line)))
        .take(2)
        .count()
        < 2
    {
        return None;
    }
    let mut values = Values::default();
    for line in lines().map(whole) {
        if is_object(line) || values.texts.len() >= MAX_VALUES {
            values.push(Cow::Borrowed(line));
        } else {
            let fixed = json::fixed(line, repairs).unwrap_or_else(|| Value::from(line));
            values.push(Cow::Owned(fixed.to_string()));
        }
    }
    Some(values)
}
