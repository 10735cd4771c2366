//! Tables, and values in their cells.

use serde::de::IgnoredAny;

use crate::readable::presentation::json::{Node, plain_string};
use crate::readable::presentation::records::Range;
use crate::readable::presentation::times::{epoch, is_time_name, stamp};
use chrono::{DateTime, Utc};

/// The column of the times that are added to counts of seconds.
pub(super) const ADDED: &str = "utc";

/// A table as text.
pub(in crate::readable::presentation) struct Table {
    /// Tab-separated lines.
    pub(in crate::readable::presentation) text: String,
    /// Its size in words.
    pub(in crate::readable::presentation) about: String,
    pub(in crate::readable::presentation) range: Option<Range>,
}

/// The text of a value in a cell: a string without its quotation marks, unless it would then read as another value.
pub(super) fn cell(node: &Node<'_>) -> String {
    let Some(text) = node.scalar() else {
        return node.compact();
    };
    match plain_string(text) {
        Some(inner) if is_plain_cell(inner) => inner.to_owned(),
        Some(_) | None => text.to_owned(),
    }
}

fn is_plain_cell(text: &str) -> bool {
    let begins_value = text.starts_with(['"', '{', '[', '<']);
    !text.is_empty() && !begins_value && serde_json::from_str::<IgnoredAny>(text).is_err()
}

/// The name of a column, for a key that can be one.
pub(super) fn column_name(key: &str) -> Option<&str> {
    plain_string(key).filter(|name| !name.is_empty() && *name != ADDED)
}

/// The time of a value in a column of this name.
pub(super) fn time(name: &str, text: &str) -> Option<DateTime<Utc>> {
    let inner = plain_string(text).unwrap_or(text);
    let whole = stamp(inner).filter(|stamp| stamp.length == inner.len());
    whole
        .and_then(|stamp| stamp.at)
        .or_else(|| added_time(name, text))
}

/// The time that is added beside a count of seconds or milliseconds.
pub(super) fn added_time(name: &str, text: &str) -> Option<DateTime<Utc>> {
    is_time_name(name).then(|| epoch(text)).flatten()
}

pub(super) fn range(times: &[Option<DateTime<Utc>>]) -> Option<Range> {
    let times: Option<Vec<DateTime<Utc>>> = times.iter().copied().collect();
    let times = times?;
    if times.len() < 2 {
        return None;
    }
    times
        .into_iter()
        .fold(None, |range, at| Some(Range::with(range, at)))
}
