//! The identity of unknown JSON: the values that name the problem are the same in each message about it.
//!
//! Ids, names and labels of the condition, its resource and its incident enter the key, whatever object they are in.
//! Times, counters, measured values, states, severities, addresses of pages and free texts never do. `walk` finds the
//! values, `named` their classes, `words` has the names of keys, `form` judges a value by its form. A sender's own key
//! goes before all others; other fields enter as far as the known ones do not name condition and resource.

mod form;
mod named;
mod walk;
mod words;

use std::collections::BTreeSet;

use serde_json::Value;

pub(super) use self::form::{stable_text, title as stable_title};
use self::walk::{Class, IdentityPart, parts};
use super::fingerprint;
use crate::sources::{Traced, WordList, canonical};

/// Ends of keys with times.
const TIMES: [&str; 4] = ["time", "timestamp", "date", "datetime"];

/// The key of a body, and the fields that it was made of.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) key: String,
    pub(super) trace: Vec<Traced>,
}

/// The identity of a body without a declared key; its whole text if nothing in it stays the same.
pub(super) fn identity(value: &Value) -> Identity {
    let chosen = choose(parts(value));
    let trace: Vec<Traced> = chosen
        .iter()
        .map(|part| Traced::text("key", &part.pointer, &part.value))
        .collect();
    let own = chosen
        .iter()
        .filter(|part| part.class == Class::Key)
        .min_by_key(|part: &&IdentityPart| words::KEYS.position(&part.word))
        .map(|part| part.value.clone());
    let mut texts: Vec<String> = chosen
        .iter()
        .map(|part: &IdentityPart| {
            // The key as it is written keeps senders apart whose numbers are the same.
            let key = part.pointer.rsplit('/').next().unwrap_or_default();
            format!("{}({key})={}", part.word, part.value)
        })
        .collect();
    texts.sort_unstable();
    texts.dedup();
    let key = own.unwrap_or_else(|| match texts.as_slice() {
        [] => fingerprint::of_body(
            canonical(value)
                .unwrap_or_else(|| value.to_string())
                .as_bytes(),
        ),
        texts => fingerprint::of_parts(texts),
    });
    Identity { key, trace }
}

/// The classes that make the key, by what is there. What names condition and resource is enough; where one of them is
/// absent, an id of the incident or other fields take its place.
fn classes(parts: &[IdentityPart]) -> &'static [Class] {
    use Class::{
        Alert, Area, Condition, ConditionId, Event, Exact, Incident, Key, Label, Name, Other,
        Reason, Resource, Soft, Text, Title,
    };
    const NAMED: &[Class] = &[
        ConditionId,
        Condition,
        Reason,
        Soft,
        Name,
        Resource,
        Area,
        Label,
        Exact,
    ];
    let has = |class: Class| parts.iter().any(|part| part.class == class);
    let condition = has(Condition) || has(Reason);
    let resource = has(Resource) || has(Label);
    if has(Key) {
        &[Key]
    } else if condition && resource {
        NAMED
    } else if has(Incident) {
        &[Incident]
    } else if has(Alert) {
        &[
            Alert,
            ConditionId,
            Condition,
            Reason,
            Soft,
            Name,
            Resource,
            Area,
            Label,
        ]
    } else if has(ConditionId) {
        NAMED
    } else if has(Soft) {
        &[Condition, Reason, Soft, Name, Resource, Area, Label]
    } else if condition {
        &[
            Condition, Reason, Name, Resource, Area, Label, Exact, Event, Other,
        ]
    } else if has(Title) || has(Name) {
        &[Title, Name, Resource, Area, Label, Exact, Event, Other]
    } else {
        &[Text, Resource, Area, Label, Exact, Event, Other]
    }
}

/// Words of texts that look like the name of a machine, for a body that names it in no field: `db-1 is CRITICAL`.
fn named_in_texts(parts: &[IdentityPart]) -> Option<IdentityPart> {
    use Class::{Alert, Condition, ConditionId, Incident, Key, Label, Resource, Soft};
    const TEXTS: WordList = WordList::new("message title summary subject description text");
    if parts.iter().any(|part: &IdentityPart| {
        matches!(
            part.class,
            Key | Soft | Incident | Alert | ConditionId | Resource | Label
        )
    }) || !parts.iter().any(|part| part.class == Condition)
    {
        return None;
    }
    let texts = parts
        .iter()
        .filter(|part| matches!(part.class, Class::Title | Class::Text))
        .filter(|part: &&IdentityPart| TEXTS.iter().any(|end| part.word.ends_with(end)));
    let words: BTreeSet<&str> = texts
        .clone()
        .flat_map(|part| part.value.split(' '))
        .filter(|word: &&str| {
            word.contains(char::is_alphabetic) && !word.contains('/') && form::is_exact(word)
        })
        .collect();
    let value = words.into_iter().collect::<Vec<_>>().join(" ");
    if value.is_empty() {
        return None;
    }
    let first = texts.into_iter().next()?;
    Some(IdentityPart {
        class: Class::Exact,
        value,
        ..first.clone()
    })
}

fn choose(parts: Vec<IdentityPart>) -> Vec<IdentityPart> {
    let kept = classes(&parts);
    let named = named_in_texts(&parts);
    let soft = parts.iter().filter(|part| part.class == Class::Soft);
    let stems: Vec<String> = soft.filter_map(|part| part.id_of.clone()).collect();
    let kept = parts.into_iter().filter(|part| kept.contains(&part.class));
    // Beside `entity_id`, the name of the entity is in some of the messages only.
    let kept = kept.filter(|part| {
        part.name_of
            .as_ref()
            .is_none_or(|stem| !stems.contains(stem))
    });
    kept.chain(named).collect()
}

/// Whether a field is named after a time.
pub(super) fn is_time_key(key: &str) -> bool {
    let word = plain(key);
    TIMES.iter().any(|end| word.ends_with(end)) || key.ends_with("_at") || key.ends_with("At")
}

/// `Dedup-Key` and `dedup_key` are `dedupkey`.
pub(super) fn plain(key: &str) -> String {
    key.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests;
