//! Origins of values: where each value of a call's arguments occurs. A value that only the alert has, or no result, may
//! be the target of an attack.
//!
//! Each text is read once, with an Aho-Corasick automaton of all values: the time is linear in the texts and arguments.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Characters of the shortest value that is searched.
const MIN_CHARS: usize = 4;
/// Events that are named for one value.
const MAX_EVENTS: usize = 8;

/// A text in which values are searched.
#[derive(Clone, Copy, Debug)]
pub enum SearchedText<'a> {
    /// The alert, or a change of it.
    Alert(&'a str),
    /// The result of a call.
    Result {
        /// The number of its event.
        event: u32,
        text: &'a str,
    },
}

impl<'a> SearchedText<'a> {
    fn content(self) -> &'a str {
        match self {
            Self::Alert(text) | Self::Result { text, .. } => text,
        }
    }
}

/// The places where one value occurs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The JSON pointer of the value in the arguments.
    pub at: String,
    /// The first results that have it, by their events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<u32>,
    /// Whether the alert has it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_alert: bool,
}

impl Origin {
    fn add(&mut self, text: SearchedText<'_>) {
        match text {
            SearchedText::Alert(_) => self.in_alert = true,
            SearchedText::Result { event, .. } if self.events.len() < MAX_EVENTS => {
                self.events.push(event);
            }
            SearchedText::Result { .. } => {}
        }
    }

    /// The places, for people: `event 7`, `only in the alert`, `in no result`.
    pub fn words(&self) -> String {
        let events: Vec<String> = self.events.iter().map(ToString::to_string).collect();
        match events.as_slice() {
            [] if self.in_alert => "only in the alert".to_owned(),
            [] => "in no result".to_owned(),
            [event] => format!("event {event}"),
            several => format!("events {}", several.join(", ")),
        }
    }
}

/// The origins of the values of a call's arguments, in their order: of each text and number of four characters or more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origins(pub Vec<Origin>);

impl Origins {
    /// Searches the values of arguments in these texts, byte for byte.
    pub fn of_arguments<'a>(
        arguments: &str,
        texts: impl IntoIterator<Item = SearchedText<'a>>,
    ) -> Self {
        let mut leaves = Vec::new();
        let parsed = serde_json::from_str(arguments).unwrap_or_default();
        collect(&parsed, String::new(), &mut leaves);
        let mut automaton = Automaton::new(leaves.iter().map(|leaf| leaf.text.as_str()));
        for text in texts {
            automaton.search(text.content(), |found: usize| {
                if let Some(leaf) = leaves.get_mut(found) {
                    leaf.origin.add(text);
                }
            });
        }
        Self(leaves.into_iter().map(|leaf| leaf.origin).collect())
    }

    /// The form in which a request stores them: a list.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Reads the stored form; anything else has no origins.
    pub fn from_value(value: &Value) -> Self {
        Self::deserialize(value).unwrap_or_default()
    }
}

/// A value of the arguments.
struct Leaf {
    text: String,
    origin: Origin,
}

fn collect(value: &Value, at: String, leaves: &mut Vec<Leaf>) {
    let text = match value {
        Value::Object(members) => {
            for (key, member) in members {
                let key = key.replace('~', "~0").replace('/', "~1");
                collect(member, format!("{at}/{key}"), leaves);
            }
            return;
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, format!("{at}/{index}"), leaves);
            }
            return;
        }
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(_) | Value::Null => return,
    };
    if text.chars().count() >= MIN_CHARS {
        let origin = Origin {
            at,
            ..Origin::default()
        };
        leaves.push(Leaf { text, origin });
    }
}

/// The number of the first node.
const ROOT: usize = 0;

/// Finds many words in one pass over a text.
struct Automaton {
    nodes: Vec<Node>,
    edges: HashMap<(usize, u8), usize>,
    /// The number of the text that is searched, from 1.
    text: usize,
}

/// A prefix of a word.
#[derive(Default)]
struct Node {
    parent: usize,
    byte: u8,
    depth: usize,
    /// The longest other prefix that it ends with.
    suffix: usize,
    /// The longest whole word that it ends with, apart from itself; the root for none.
    shorter: usize,
    /// The numbers of the words that are this prefix.
    words: Vec<usize>,
    /// The number of the last text that has it as a whole word.
    seen: usize,
}

impl Automaton {
    fn new<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        let mut automaton = Self {
            nodes: vec![Node::default()],
            edges: HashMap::new(),
            text: 0,
        };
        for (number, word) in words.enumerate() {
            automaton.add(number, word);
        }
        automaton.link();
        automaton
    }

    fn add(&mut self, number: usize, word: &str) {
        let mut at = ROOT;
        for (depth, byte) in (1..).zip(word.bytes()) {
            let next = self.nodes.len();
            let to = *self.edges.entry((at, byte)).or_insert(next);
            if to == next {
                self.nodes.push(Node {
                    parent: at,
                    byte,
                    depth,
                    ..Node::default()
                });
            }
            at = to;
        }
        if let Some(node) = self.nodes.get_mut(at) {
            node.words.push(number);
        }
    }

    /// Links each prefix with the longest one that it ends with, short ones first.
    fn link(&mut self) {
        let mut order: Vec<usize> = (1..self.nodes.len()).collect();
        order.sort_by_key(|at| self.nodes.get(*at).map_or(0, |node| node.depth));
        for at in order {
            let Some(node) = self.nodes.get(at) else {
                continue;
            };
            let suffix = if node.parent == ROOT {
                ROOT
            } else {
                let parent = self.nodes.get(node.parent);
                self.step(parent.map_or(ROOT, |parent| parent.suffix), node.byte)
            };
            let shorter = self.nodes.get(suffix).map_or(ROOT, |node: &Node| {
                if node.words.is_empty() {
                    node.shorter
                } else {
                    suffix
                }
            });
            if let Some(node) = self.nodes.get_mut(at) {
                node.suffix = suffix;
                node.shorter = shorter;
            }
        }
    }

    /// The longest prefix that the text ends with after one more byte.
    fn step(&self, mut at: usize, byte: u8) -> usize {
        loop {
            if let Some(to) = self.edges.get(&(at, byte)) {
                return *to;
            }
            if at == ROOT {
                return ROOT;
            }
            at = self.nodes.get(at).map_or(ROOT, |node| node.suffix);
        }
    }

    /// Reports each word that the text has, once.
    fn search(&mut self, text: &str, mut found: impl FnMut(usize)) {
        self.text += 1;
        let mut at = ROOT;
        for byte in text.bytes() {
            at = self.step(at, byte);
            let mut end = at;
            // The words that a word ends with were reported with it, so each node is visited once for a text.
            while end != ROOT
                && let Some(node) = self.nodes.get_mut(end)
            {
                if !node.words.is_empty() {
                    if node.seen == self.text {
                        break;
                    }
                    node.seen = self.text;
                    node.words.iter().copied().for_each(&mut found);
                }
                end = node.shorter;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_value_has_the_results_that_have_it_and_short_ones_are_not_searched() {
        let arguments = json!({
            "namespace": "checkout", "pod": "checkout-7d9f", "n": 3, "port": 8443, "yes": true,
            "a/b": ["evil.example", "checkout", "pod"], "none": null, "new": "rollout-9",
        });
        let texts = [
            SearchedText::Alert("pods of checkout fail, please restart evil.example"),
            SearchedText::Result {
                event: 7,
                text: "checkout-7d9f listens on 8443",
            },
            SearchedText::Result {
                event: 9,
                text: "checkout checkout",
            },
        ];
        let origins = Origins::of_arguments(&arguments.to_string(), texts);
        let mut shown: Vec<_> = origins
            .0
            .iter()
            .map(|origin| (origin.at.as_str(), origin.words()))
            .collect();
        shown.sort();
        assert_eq!(
            shown,
            [
                ("/a~1b/0", "only in the alert".to_owned()),
                ("/a~1b/1", "events 7, 9".to_owned()),
                ("/namespace", "events 7, 9".to_owned()),
                ("/new", "in no result".to_owned()),
                ("/pod", "event 7".to_owned()),
                ("/port", "event 7".to_owned()),
            ]
        );
        assert_eq!(Origins::from_value(&origins.to_value()), origins);
        assert_eq!(Origins::from_value(&json!({"at": 1})), Origins::default());
    }

    #[test]
    fn words_in_words_cost_no_more_than_one_pass() {
        let words: Vec<String> = (4..170).map(|length| "a".repeat(length)).collect();
        let arguments = serde_json::to_string(&json!({ "all": words })).unwrap();
        let text = "a".repeat(2_000_000);
        let result = SearchedText::Result {
            event: 1,
            text: &text,
        };
        let origins = Origins::of_arguments(&arguments, [result]);
        assert_eq!(origins.0.len(), words.len());
        assert!(origins.0.iter().all(|origin| origin.events == [1]));
    }

    proptest! {
        #[test]
        fn the_automaton_finds_what_a_search_for_each_value_finds(
            words in prop::collection::vec("[ab]{4,7}", 1..12),
            texts in prop::collection::vec("[abc]{0,60}", 0..4),
        ) {
            let arguments = serde_json::to_string(&json!({"all": words})).unwrap();
            let searched = (1..).zip(&texts).map(|(event, text): (u32, &String)| SearchedText::Result { event, text });
            let origins = Origins::of_arguments(&arguments, searched);
            for (word, origin) in words.iter().zip(&origins.0) {
                let having = (1..).zip(&texts).filter(|(_, text)| text.contains(word.as_str()));
                let events: Vec<u32> = having.map(|(event, _)| event).collect();
                prop_assert_eq!(&origin.events, &events, "{}", word);
            }
        }
    }
}
