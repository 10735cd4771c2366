//! Guesses a first declaration of a source from one body, for `tarsy sources init`: which pointers lead to the fields
//! of an alert. A person completes it; what was not found stays absent.
//!
//! `leaf` has the values of a body, `words` the names of keys. A time, a measured value and the id of an event are
//! never a part of the key.

mod leaf;
mod words;

use serde_json::Value;

use self::leaf::{Leaf, leaves, ranked, token};
use super::identity;
use crate::alert::{AlertStatus, Severity};
use crate::sources::{severity_of, status_of};

/// Texts that are read as JSON.
const MAX_EMBEDDED: usize = 4;
const MAX_RESOURCES: usize = 3;
const MAX_LINKS: usize = 3;
/// A longer word is no word of a state.
const MAX_WORD_CHARS: usize = 40;
/// A longer text is no title.
const MAX_TITLE_CHARS: usize = 200;

/// The guessed keys of a source. Each text is an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guess {
    pub parse: Vec<String>,
    /// The list of alerts in the body; empty for a body that is a list itself.
    pub each: Option<String>,
    /// Pointers that a body of this source has; empty when there are fewer than two.
    pub recognise: Vec<String>,
    pub alert_type: Option<String>,
    pub title: Option<String>,
    pub severity: Option<GuessedWords>,
    pub status: Option<GuessedWords>,
    pub key: Vec<String>,
    pub labels: Vec<GuessedLabels>,
    pub links: Vec<GuessedLink>,
    pub runbook: Option<String>,
    pub at: Option<String>,
}

/// The pointer to a word, and a table for words that are not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuessedWords {
    pub from: String,
    /// The words of the body, each with its meaning here.
    pub map: Vec<WordMeaning>,
}

/// A word of a body, and a status or severity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordMeaning {
    pub word: String,
    pub meaning: &'static str,
}

/// The place of the labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuessedLabels {
    Object(String),
    Split {
        list: String,
        separator: char,
    },
    Pairs {
        list: String,
        name: String,
        value: String,
    },
}

/// A link and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuessedLink {
    pub name: String,
    pub url: String,
}

/// The place of the alerts in a body.
struct Elements<'v> {
    each: Option<String>,
    element: &'v Value,
}

impl Guess {
    /// Guesses from the first alert of a body.
    pub fn new(body: &Value) -> Self {
        let mut body = body.clone();
        let parse = embed(&mut body);
        let Elements { each, element } = elements(&body);
        let leaves = leaves(element, if each.is_some() { "@" } else { "" });
        let pointer = |leaf: &&Leaf<'_>| leaf.pointer.clone();
        let alert_type = alert_type(&leaves);
        let title = title(&leaves);
        let runbook = ranked(&leaves, &words::RUNBOOKS)
            .into_iter()
            .find(|leaf| leaf.is_url());
        let times = ranked(&leaves, &words::TIMES).into_iter().chain(&leaves);
        let labels = labels(&leaves);
        let mut guess = Self {
            key: key(&leaves, alert_type, &labels),
            alert_type: alert_type.as_ref().map(pointer),
            title: title.as_ref().map(pointer),
            severity: severity(&leaves),
            status: status(&leaves),
            links: links(&leaves, runbook),
            runbook: runbook.as_ref().map(pointer),
            at: times
                .into_iter()
                .find(|leaf| leaf.is_time())
                .map(|leaf| leaf.pointer.clone()),
            recognise: Vec::new(),
            labels,
            parse,
            each,
        };
        guess.recognise = recognise(&guess, &leaves);
        guess
    }
}

/// Reads texts that are JSON in place, and gives the pointers to them.
fn embed(body: &mut Value) -> Vec<String> {
    let found = leaves(body, "");
    let embedded = found.iter().filter_map(|leaf| {
        let text = leaf
            .value
            .as_str()
            .filter(|text| text.trim_start().starts_with(['{', '[']))?;
        Some((
            leaf.pointer.clone(),
            serde_json::from_str::<Value>(text).ok()?,
        ))
    });
    let embedded: Vec<(String, Value)> = embedded.take(MAX_EMBEDDED).collect();
    embedded
        .into_iter()
        .filter_map(|(pointer, parsed): (String, Value)| {
            *body.pointer_mut(&pointer)? = parsed;
            Some(pointer)
        })
        .collect()
}

fn elements(body: &Value) -> Elements<'_> {
    let whole = Elements {
        each: None,
        element: body,
    };
    let first = |value: &'_ Value| {
        value
            .as_array()
            .and_then(|items| items.first())
            .is_some_and(Value::is_object)
    };
    if first(body) {
        return Elements {
            each: Some(String::new()),
            element: body.get(0).unwrap_or(body),
        };
    }
    let Some(fields) = body.as_object() else {
        return whole;
    };
    for name in words::LISTS.iter() {
        let found = fields
            .iter()
            .find(|(key, value)| identity::plain(key) == name && first(value));
        if let Some((token, element)) =
            found.and_then(|(key, value)| Some((token(key)?, value.get(0)?)))
        {
            return Elements {
                each: Some(format!("/{token}")),
                element,
            };
        }
    }
    whole
}

fn alert_type<'l, 'v>(leaves: &'l [Leaf<'v>]) -> Option<&'l Leaf<'v>> {
    let named = ranked(leaves, &words::TYPES)
        .into_iter()
        .find(|leaf: &&Leaf<'_>| {
            leaf.prose()
                .is_some_and(|text| text.len() <= MAX_TITLE_CHARS && status_of(text).is_none())
        });
    named.or_else(|| {
        ranked(leaves, &words::NAMES)
            .into_iter()
            .find(|leaf| is_name(leaf))
    })
}

/// A text that stays the same from message to message.
fn is_name(leaf: &Leaf<'_>) -> bool {
    leaf.prose()
        .is_some_and(|text| text.chars().count() <= MAX_TITLE_CHARS && is_stable(text))
}

fn is_stable(text: &str) -> bool {
    identity::stable_text(text).is_some_and(|stable| stable == words_of(text))
}

fn words_of(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn title<'l, 'v>(leaves: &'l [Leaf<'v>]) -> Option<&'l Leaf<'v>> {
    let is_title = |leaf: &&Leaf<'_>| {
        leaf.prose().is_some_and(|text| {
            text.chars().count() <= MAX_TITLE_CHARS && status_of(text).is_none()
        })
    };
    let named = ranked(leaves, &words::TITLES).into_iter().find(is_title);
    named.or_else(|| {
        leaves.iter().find(|leaf: &&Leaf<'_>| {
            is_title(leaf) && leaf.prose().is_some_and(|text| text.contains(' '))
        })
    })
}

fn severity(leaves: &[Leaf<'_>]) -> Option<GuessedWords> {
    let found = ranked(leaves, &words::SEVERITIES);
    let known = found.iter().find(|leaf| {
        leaf.scalar()
            .is_some_and(|word| severity_of(&word).is_some())
    });
    if let Some(leaf) = known {
        return Some(words_at(leaf, Vec::new()));
    }
    let leaf = found
        .into_iter()
        .find(|leaf| word(leaf).is_some() && !leaf.value.is_boolean())?;
    let normal = WordMeaning {
        word: word(leaf)?,
        meaning: Severity::Normal.as_str(),
    };
    Some(words_at(leaf, vec![normal]))
}

fn status(leaves: &[Leaf<'_>]) -> Option<GuessedWords> {
    let found = ranked(leaves, &words::STATUSES);
    let known = found
        .iter()
        .find(|leaf| leaf.scalar().is_some_and(|word| status_of(&word).is_some()));
    if let Some(leaf) = known {
        return Some(words_at(leaf, Vec::new()));
    }
    let firing = AlertStatus::Firing.as_str();
    let resolved = AlertStatus::Resolved.as_str();

    let meaning = |word: &str, meaning| WordMeaning {
        word: word.to_owned(),
        meaning,
    };
    for (flags, when_true, when_false) in [
        (words::ENDED, resolved, firing),
        (words::PRESENT, firing, resolved),
    ] {
        if let Some(leaf) = ranked(leaves, &flags)
            .into_iter()
            .find(|leaf| leaf.value.is_boolean())
        {
            let map = vec![meaning("true", when_true), meaning("false", when_false)];
            return Some(words_at(leaf, map));
        }
    }
    let leaf = found.into_iter().find(|leaf| word(leaf).is_some())?;
    let map = vec![meaning(&word(leaf)?, firing)];
    Some(words_at(leaf, map))
}

fn words_at(leaf: &Leaf<'_>, map: Vec<WordMeaning>) -> GuessedWords {
    GuessedWords {
        from: leaf.pointer.clone(),
        map,
    }
}

/// A word for a table.
fn word(leaf: &Leaf<'_>) -> Option<String> {
    leaf.scalar().filter(|text: &String| {
        text.chars().count() <= MAX_WORD_CHARS
            && !text.contains(char::is_whitespace)
            && !text.chars().any(char::is_control)
            && !leaf.is_url()
    })
}

/// The sender's own key, or the condition and its resource.
fn key(
    leaves: &[Leaf<'_>],
    alert_type: Option<&Leaf<'_>>,
    labels: &[GuessedLabels],
) -> Vec<String> {
    let is_part =
        |leaf: &&Leaf<'_>| leaf.scalar().is_some() && !leaf.is_time() && !leaf.value.is_boolean();
    let pointer = |leaf: &Leaf<'_>| leaf.pointer.clone();
    if let Some(own) = ranked(leaves, &words::DEDUP).into_iter().find(is_part) {
        return vec![pointer(own)];
    }
    let condition = ranked(leaves, &words::CONDITIONS)
        .into_iter()
        .find(is_part)
        .or(alert_type);
    let resources = ranked(leaves, &words::RESOURCES)
        .into_iter()
        .filter(is_part);
    let resources: Vec<&Leaf<'_>> = resources
        .filter(|leaf| !leaf.is_url() && is_resource(leaf))
        .collect();
    let mut key: Vec<String> = condition.map(pointer).into_iter().collect();
    for leaf in resources.into_iter().take(MAX_RESOURCES) {
        if !key.contains(&leaf.pointer) {
            key.push(pointer(leaf));
        }
    }
    let object = labels.iter().find_map(|labels| match labels {
        GuessedLabels::Object(pointer) if pointer.to_lowercase().ends_with("labels") => {
            Some(pointer.clone())
        }
        GuessedLabels::Object(_) | GuessedLabels::Split { .. } | GuessedLabels::Pairs { .. } => {
            None
        }
    });
    if key.len() < 2 {
        key.extend(object);
    }
    key
}

/// The name of a resource, and no sentence about it.
fn is_resource(leaf: &Leaf<'_>) -> bool {
    leaf.scalar()
        .is_some_and(|text| text.split_whitespace().count() <= 4 && status_of(&text).is_none())
}

fn labels(leaves: &[Leaf<'_>]) -> Vec<GuessedLabels> {
    ranked(leaves, &words::LABELS)
        .into_iter()
        .filter_map(labels_of)
        .take(2)
        .collect()
}

fn labels_of(leaf: &Leaf<'_>) -> Option<GuessedLabels> {
    let list = leaf.pointer.clone();
    if let Some(fields) = leaf.value.as_object() {
        let is_flat = fields
            .values()
            .any(|value| value.is_string() || value.is_number());
        return is_flat.then_some(GuessedLabels::Object(list));
    }
    let first = leaf.value.as_array()?.first()?;
    if let Some(text) = first.as_str() {
        let separator = [':', '=']
            .into_iter()
            .find(|separator| text.contains(*separator))
            .unwrap_or(':');
        return Some(GuessedLabels::Split { list, separator });
    }
    let fields = first.as_object()?;
    let field = |names: &[&str]| {
        let found = names
            .iter()
            .find(|name| fields.get(**name).is_some_and(|value| value.is_string()));
        found.map(|name| (*name).to_owned())
    };
    Some(GuessedLabels::Pairs {
        list,
        name: field(&["name", "key", "label"])?,
        value: field(&["value", "val"])?,
    })
}

fn links(leaves: &[Leaf<'_>], runbook: Option<&Leaf<'_>>) -> Vec<GuessedLink> {
    let mut links: Vec<GuessedLink> = Vec::new();
    let urls = leaves.iter().filter(|leaf| {
        leaf.is_url() && runbook.is_none_or(|runbook| runbook.pointer != leaf.pointer)
    });
    for leaf in urls {
        let name = link_name(leaf);
        if links.len() < MAX_LINKS && !links.iter().any(|link| link.name == name) {
            links.push(GuessedLink {
                name,
                url: leaf.pointer.clone(),
            });
        }
    }
    links
}

/// `graph` of `graph_url`; `incident` of `url` in `incident`.
fn link_name(leaf: &Leaf<'_>) -> String {
    let short = |word: &str| {
        let ends = ["url", "link", "href", "uri"];
        let short = ends
            .iter()
            .find_map(|end| word.strip_suffix(end))
            .unwrap_or(word);
        short
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .collect::<String>()
    };
    let names = [short(&leaf.word), short(&leaf.owned)];
    names
        .into_iter()
        .find(|name| !name.is_empty())
        .unwrap_or_else(|| "page".to_owned())
}

/// Pointers into the body that another system hardly has: those of the guess, and the longest name of a field.
fn recognise(guess: &Guess, leaves: &[Leaf<'_>]) -> Vec<String> {
    let used = guess
        .key
        .iter()
        .cloned()
        .chain(guess.status.as_ref().map(|words| words.from.clone()))
        .chain(guess.alert_type.clone());
    let used: Vec<String> = used.chain(guess.title.clone()).collect();
    let own = leaves
        .iter()
        .filter(|leaf| leaf.depth == 1 && !leaf.value.is_null() && !is_common(leaf));
    let own = own
        .max_by_key(|leaf| leaf.word.len())
        .map(|leaf| leaf.pointer.clone());
    let mut pointers: Vec<String> = Vec::new();
    for pointer in used.into_iter().take(2).chain(own) {
        let place = match (&guess.each, pointer.strip_prefix('@')) {
            (Some(each), Some(rest)) => format!("{each}/0{rest}"),
            _ => pointer,
        };
        if !pointers.contains(&place) {
            pointers.push(place);
        }
    }
    if pointers.len() < 2 {
        Vec::new()
    } else {
        pointers
    }
}

fn is_common(leaf: &Leaf<'_>) -> bool {
    let common = [
        words::TITLES,
        words::STATUSES,
        words::SEVERITIES,
        words::TIMES,
        words::RESOURCES,
    ];
    common.iter().any(|words| words.contains(&leaf.word))
}

#[cfg(test)]
mod tests;
