//! Selects the elements of a list and the fields of an object that stay.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::Value;

use super::left_out::{Counter, labels};
use super::members::{self, ObjectField};
use super::{MAX_DEPTH, Reducer};
use crate::intake::batch::Urgency;
use crate::intake::decode::json;

/// A larger element is shortened itself, so that several stay.
const ELEMENT_SHARE: usize = 8;
/// The number of elements that stay although they are larger: a message has no more alerts.
const MIN_ELEMENTS: usize = 32;
/// A field gets less room only if it is left out.
const MIN_FIELD_BYTES: usize = 256;

type Labels = BTreeMap<String, String>;

/// The labels that several elements share.
#[derive(Debug, Default)]
struct Shared(Option<Labels>);

impl Shared {
    fn add(&mut self, labels: Labels) {
        match &mut self.0 {
            None => self.0 = Some(labels),
            Some(shared) => shared.retain(|key, value| labels.get(key) == Some(value)),
        }
    }

    /// The labels that these share and the others do not.
    fn beyond(&self, others: &Self) -> Labels {
        let own = self.0.iter().flatten().filter(|(key, value)| {
            let other = others.0.as_ref().and_then(|all| all.get(*key));
            other != Some(*value)
        });
        own.map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }
}

/// The labels of all elements, and of those that fire.
#[derive(Debug, Default)]
struct Groups {
    all: Shared,
    firing: Shared,
}

impl Groups {
    fn add(&mut self, value: &Value, urgency: Urgency) {
        let Some(labels) = labels(value) else { return };
        if urgency.is_firing() {
            self.firing.add(labels.clone());
        }
        self.all.add(labels);
    }
}

impl Reducer<'_> {
    /// A list of the worst elements, in the order of the sender, in about `budget` bytes. The others are counted.
    pub(super) fn list(&self, elements: &[&str], budget: usize, counter: &mut Counter) -> String {
        let mut groups = Groups::default();
        let mut ranked: Vec<(Reverse<Urgency>, usize)> = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            let value = parsed(element);
            let urgency = (self.urgency)(&value, self.group);
            groups.add(&value, urgency);
            ranked.push((Reverse(urgency), index));
        }
        // A pointer of a source may lead to the first element; the name of a group is that of the first that fires.
        let first = ranked
            .iter()
            .find(|(urgency, _)| urgency.0.is_firing())
            .map(|(_, index)| *index);
        ranked.sort_unstable();
        let order = std::iter::once(0)
            .chain(first)
            .chain(ranked.iter().map(|(_, index)| *index));
        let mut kept = Kept {
            texts: BTreeMap::new(),
            room: budget,
            share: budget / ELEMENT_SHARE,
        };
        for index in order {
            if let Some(element) = elements.get(index) {
                self.keep(&mut kept, index, element);
            }
        }
        let urgencies: BTreeMap<usize, Urgency> = ranked
            .into_iter()
            .map(|(urgency, index)| (index, urgency.0))
            .collect();
        self.count_others(elements, &mut kept, &Ranked { urgencies, groups }, counter);
        counter.is_cut |= kept
            .texts
            .values()
            .any(|text| matches!(text, Cow::Owned(_)));
        let texts: Vec<&str> = kept.texts.values().map(Cow::as_ref).collect();
        format!("[{}]", texts.join(","))
    }

    fn keep<'t>(&self, kept: &mut Kept<'t>, index: usize, element: &'t str) {
        if kept.texts.contains_key(&index) {
            return;
        }
        let is_few = kept.texts.len() < MIN_ELEMENTS;
        let text = if element.len() <= kept.share {
            Cow::Borrowed(element)
        } else if is_few && self.depth < MAX_DEPTH {
            let share = kept.share.min(kept.room.max(MIN_FIELD_BYTES));
            Cow::Owned(
                Reducer {
                    limit: share,
                    ..self.inner()
                }
                .json(element, &mut Counter::default()),
            )
        } else {
            return;
        };
        if text.len() < kept.room || kept.texts.len() < 2 {
            kept.room = kept.room.saturating_sub(text.len() + 1);
            kept.texts.insert(index, text);
        }
    }

    /// Counts the elements that do not stay. One without a label that all that stay share stays, too: title and key of
    /// a group are made of the labels that all of it share.
    fn count_others<'t>(
        &self,
        elements: &[&'t str],
        kept: &mut Kept<'t>,
        ranked: &Ranked,
        counter: &mut Counter,
    ) {
        if kept.texts.len() == elements.len() {
            return;
        }
        let mut of_kept = Groups::default();
        for index in kept.texts.keys() {
            if let (Some(element), Some(urgency)) =
                (elements.get(*index), ranked.urgencies.get(index))
            {
                of_kept.add(&parsed(element), *urgency);
            }
        }
        let mut beyond = of_kept.all.beyond(&ranked.groups.all);
        let mut beyond_firing = of_kept.firing.beyond(&ranked.groups.firing);
        for (index, element) in elements.iter().enumerate() {
            if kept.texts.contains_key(&index) {
                continue;
            }
            let Some(urgency) = ranked.urgencies.get(&index) else {
                continue;
            };
            let value = parsed(element);
            let differs = labels(&value).is_some_and(|labels| {
                let is_shared = |key: &String, value: &mut String| labels.get(key) == Some(value);
                let before = beyond.len() + beyond_firing.len();
                beyond.retain(is_shared);
                if urgency.is_firing() {
                    beyond_firing.retain(is_shared);
                }
                before > beyond.len() + beyond_firing.len()
            });
            if differs {
                let short = Reducer {
                    limit: kept.share,
                    ..self.inner()
                };
                let fits = element.len() <= kept.share || self.depth >= MAX_DEPTH;
                let text = if fits {
                    Cow::Borrowed(*element)
                } else {
                    short.json(element, &mut Counter::default()).into()
                };
                kept.texts.insert(index, text);
            } else {
                counter.add(&value, *urgency);
            }
        }
    }

    /// An object whose small fields stay; the large ones share the room that is left.
    pub(super) fn object(
        &self,
        fields: &[ObjectField<'_>],
        budget: usize,
        counter: &mut Counter,
    ) -> String {
        let mut order: Vec<usize> = (0..fields.len()).collect();
        order.sort_by_key(|index| fields.get(*index).map_or(0, |field| field.value.len()));
        let group = members::status_of(fields);
        let mut room = budget;
        let mut texts = BTreeMap::new();

        for (done, index) in order.into_iter().enumerate() {
            let Some(field) = fields.get(index) else {
                continue;
            };
            let ObjectField { key, value } = field;
            let key = Value::from(key.as_str()).to_string();
            let share = (room / (fields.len() - done)).saturating_sub(key.len() + 2);
            let text = if value.len() <= share {
                Cow::Borrowed(*value)
            } else if share >= MIN_FIELD_BYTES && self.depth < MAX_DEPTH {
                let group = if field.has_alerts() { group } else { None };
                Reducer {
                    limit: share,
                    group,
                    ..self.inner()
                }
                .json(value, counter)
                .into()
            } else {
                counter.fields += 1;
                continue;
            };
            let text = format!("{key}:{text}");
            room = room.saturating_sub(text.len() + 1);
            texts.insert(index, text);
        }
        let texts: Vec<String> = texts.into_values().collect();
        format!("{{{}}}", texts.join(","))
    }
}

/// The elements that stay, by their places.
struct Kept<'t> {
    texts: BTreeMap<usize, Cow<'t, str>>,
    room: usize,
    /// A larger element is shortened.
    share: usize,
}

/// The ranks of all elements.
struct Ranked {
    urgencies: BTreeMap<usize, Urgency>,
    groups: Groups,
}

fn parsed(element: &str) -> Value {
    serde_json::from_str(element)
        .ok()
        .or_else(|| json::parse(element, &mut Vec::new()))
        .unwrap_or_default()
}
