//! Bodies with many alerts: splits lists, and keeps the worst alerts and the names of the others when there are too
//! many.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::Value;

use super::reading::ParsedBody;
use super::{IntakeError, Part};
use crate::alert::{AlertStatus, Severity};
use crate::sources::Note;

/// The number of alerts of a message that are kept: the worst ones. The text of the worst one names the others.
pub const MAX_PARTS: usize = 32;
/// The number of elements of a list that are read: the worst ones.
const MAX_ELEMENTS: usize = 1_024;
/// The places of bodies in a list; the alerts of one body are so far apart.
const PLACES: u32 = 1 << 20;
/// More names of alerts that are left out are counted.
const MAX_NAMES: usize = 30;
/// The rank of what fires.
const FIRING: u8 = 4;
/// The keys of an object that is a pair, in lower case.
const PAIR_KEYS: [&str; 9] = [
    "name", "key", "label", "title", "field", "value", "val", "short", "type",
];

/// The urgency of an alert: more is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Urgency {
    rank: u8,
    pub(super) severity: Severity,
}

impl Urgency {
    pub(super) fn new(status: AlertStatus, severity: Severity) -> Self {
        let rank = match status {
            AlertStatus::Firing => FIRING,
            // An end that is left out would leave an investigation of its alert uninformed.
            AlertStatus::Resolved => 3,
            AlertStatus::Acknowledged => 2,
            AlertStatus::Test => 1,
            AlertStatus::Ignored => 0,
        };
        Self { rank, severity }
    }

    pub(super) fn is_firing(self) -> bool {
        self.rank == FIRING
    }
}

/// The alerts of a list while it is read.
#[derive(Debug, Default)]
pub(super) struct Batch {
    readings: Vec<ParsedBody>,
    pub(super) no_alerts: usize,
    /// Elements that were not read, because there are too many.
    unread: usize,
}

impl Batch {
    pub(super) fn push(&mut self, reading: ParsedBody) {
        self.readings.push(reading);
    }

    /// Adds the alerts of the body at this place of a list. The first alert of a body has the place of the body, and no
    /// place depends on the other bodies.
    pub(super) fn extend(&mut self, outer: u32, mut readings: Vec<ParsedBody>) {
        for reading in &mut readings {
            reading.index = reading.index.saturating_mul(PLACES).saturating_add(outer);
        }
        self.readings.append(&mut readings);
    }

    /// # Errors
    /// When there is no alert.
    pub(super) fn finish(mut self) -> Result<Vec<ParsedBody>, IntakeError> {
        let first = self.readings.first_mut().ok_or(IntakeError::Empty)?;
        if self.no_alerts > 0 {
            first.notes.push(Note::NoAlerts(self.no_alerts));
        }
        if self.unread > 0 {
            first.notes.push(Note::Unread(self.unread));
        }
        Ok(self.readings)
    }
}

/// Whether a list has bodies of alerts, and is not one body: a list of numbers, or of names with their values.
pub(super) fn has_bodies(items: &[Value]) -> bool {
    let objects = || {
        items
            .iter()
            .filter(|item| item.as_object().is_some_and(|fields| !fields.is_empty()))
    };
    objects().next().is_some()
        && !objects().all(|item: &Value| {
            item.as_object().is_some_and(|fields| {
                fields.len() <= 4
                    && fields.contains_key("value")
                    && fields
                        .keys()
                        .all(|key: &String| PAIR_KEYS.contains(&key.to_lowercase().as_str()))
            })
        })
}

/// The worst elements of a list that is too long, in their order and with their places.
pub(super) fn worst(
    elements: Vec<Value>,
    urgency: impl Fn(&Value) -> Urgency,
    batch: &mut Batch,
) -> Vec<(u32, Value)> {
    let mut elements: Vec<(u32, Value)> = (0..).zip(elements).collect();
    if elements.len() > MAX_ELEMENTS {
        batch.unread = elements.len() - MAX_ELEMENTS;
        elements.sort_by_cached_key(|(index, element)| (Reverse(urgency(element)), *index));
        elements.truncate(MAX_ELEMENTS);
        elements.sort_by_key(|(index, _)| *index);
    }
    elements
}

/// Keeps the worst alerts of too many, in their order. The worst one names the others.
pub(super) fn keep_worst(parts: &mut Vec<Part>) {
    if parts.len() <= MAX_PARTS {
        return;
    }
    let urgency = |part: &Part| Urgency::new(part.alert.status, part.alert.severity);
    let mut order: Vec<(Reverse<Urgency>, u32)> = parts
        .iter()
        .map(|part| (Reverse(urgency(part)), part.index))
        .collect();
    order.sort_unstable();
    order.truncate(MAX_PARTS);
    let is_kept = |part: &Part| order.contains(&(Reverse(urgency(part)), part.index));
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for part in parts.iter().filter(|part| !is_kept(part)) {
        *names.entry(&part.alert.alert_type).or_default() += 1;
    }
    let note = left_out(&names);
    parts.retain(is_kept);
    let worst = order.first().map(|(_, index)| *index);
    if let Some(worst) = parts.iter_mut().find(|part| Some(part.index) == worst) {
        worst.alert.text.push_str(&note);
    }
}

fn left_out(names: &BTreeMap<&str, usize>) -> String {
    let count: usize = names.values().sum();
    let mut by_number: Vec<(&str, usize)> =
        names.iter().map(|(name, count)| (*name, *count)).collect();
    by_number.sort_by_key(|(_, count)| Reverse(*count));
    let mut shown: Vec<String> = by_number
        .iter()
        .take(MAX_NAMES)
        .map(|(name, count): &(&str, usize)| {
            if *count > 1 {
                format!("{name} ({count})")
            } else {
                (*name).to_owned()
            }
        })
        .collect();
    let more = by_number.len().saturating_sub(MAX_NAMES);
    if more > 0 {
        shown.push(format!("{more} other names"));
    }
    format!(
        "\n[{count} more alerts of this message were left out, none of them worse: {}]",
        shown.join(", ")
    )
}
