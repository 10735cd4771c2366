//! Reads typed values from a YAML tree and collects all faults instead of stopping at the first one.

use std::cell::RefCell;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::fault::{Fault, did_you_mean};
use super::template::{Template, is_variable_name};
use super::units::{parse_bytes, parse_duration, parse_tokens, show_bytes, show_duration, show_tokens};
use super::yaml::{Data, Node};
use crate::config::Env;

/// The environment and the collected faults of one file.
pub(crate) struct Context<'e> {
    env: Env<'e>,
    faults: RefCell<Vec<Fault>>,
}

impl<'e> Context<'e> {
    pub(crate) fn new(env: Env<'e>) -> Self {
        Self { env, faults: RefCell::default() }
    }

    /// The faults, sorted by line.
    pub(crate) fn into_faults(self) -> Vec<Fault> {
        let mut faults = self.faults.into_inner();
        faults.sort_by_key(|fault| fault.line);
        faults
    }

    fn fault(&self, key: String, line: usize, problem: String) {
        self.faults.borrow_mut().push(Fault { key, line, problem });
    }
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("faults", &self.faults).finish_non_exhaustive()
    }
}

/// A node with its path. A method that returns `None` has reported the fault.
#[derive(Clone, Debug)]
pub(crate) struct Field<'c> {
    context: &'c Context<'c>,
    path: String,
    line: usize,
    node: Option<&'c Node>,
}

impl<'c> Field<'c> {
    pub(crate) fn root(context: &'c Context<'c>, node: &'c Node) -> Self {
        Self { context, path: String::new(), line: node.line, node: Some(node) }
    }

    pub(crate) fn fault(&self, problem: String) {
        self.context.fault(self.path.clone(), self.line, problem);
    }

    /// Reports a word that is not one of the accepted ones.
    pub(crate) fn not_accepted(&self, accepted: &[&str]) {
        let list: Vec<&str> = accepted.iter().map(|word| if word.is_empty() { "\"\"" } else { word }).collect();
        let hint = match self.data() {
            Data::Text(text) => hint(text, accepted),
            Data::Null | Data::Flag(_) | Data::Integer(_) | Data::Number(_) | Data::List(_) | Data::Map(_) => {
                String::new()
            }
        };
        self.fault(format!("{}; accepted: {}{hint}", self.seen(), list.join(", ")));
    }

    /// Reports a value of another kind than the accepted one.
    pub(crate) fn expected(&self, accepted: &str) {
        self.fault(format!("{}; accepted: {accepted}", self.seen()));
    }

    fn data(&self) -> &'c Data {
        self.node.map_or(&Data::Null, |node| &node.data)
    }

    /// The value as written; the value of a variable is never shown.
    fn seen(&self) -> String {
        match self.data() {
            Data::Null => "nothing".to_owned(),
            Data::Flag(yes) => yes.to_string(),
            Data::Integer(number) => number.to_string(),
            Data::Number(number) => number.to_string(),
            Data::Text(text) => format!("{text:?}"),
            Data::List(_) => "a list".to_owned(),
            Data::Map(_) => "a mapping".to_owned(),
        }
    }

    /// A text whose variables are all set, unresolved.
    pub(crate) fn template(&self) -> Option<Template> {
        self.expanded("a text").map(|(template, _)| template)
    }

    /// A text with its variables resolved.
    pub(crate) fn text(&self) -> Option<String> {
        self.expanded("a text").map(|(_, text)| text)
    }

    fn expanded(&self, accepted: &str) -> Option<(Template, String)> {
        let template = match self.data() {
            Data::Text(text) => Template::new(text.clone()),
            Data::Flag(_) | Data::Integer(_) | Data::Number(_) => {
                self.expected(&format!("{accepted} (write it in quotes)"));
                return None;
            }
            Data::Null | Data::List(_) | Data::Map(_) => {
                self.expected(accepted);
                return None;
            }
        };
        match template.resolve(self.context.env) {
            Ok(text) => Some((template, text)),
            Err(error) => {
                self.fault(error.to_string());
                None
            }
        }
    }

    /// One of the accepted words.
    pub(crate) fn word(&self, accepted: &[&str]) -> Option<String> {
        let text = self.text()?;
        if accepted.contains(&text.as_str()) {
            return Some(text);
        }
        self.not_accepted(accepted);
        None
    }

    /// A name that is defined elsewhere in the file.
    pub(crate) fn reference(&self, defined: &[String]) -> Option<String> {
        let text = self.text()?;
        if defined.contains(&text) {
            return Some(text);
        }
        let words: Vec<&str> = defined.iter().map(String::as_str).collect();
        let list = if words.is_empty() { "nothing".to_owned() } else { words.join(", ") };
        self.fault(format!("{} is not defined; defined: {list}{}", self.seen(), hint(&text, &words)));
        None
    }

    /// The name of an environment variable. Any other text may be the secret itself, so it is not shown.
    pub(crate) fn variable_name(&self) -> Option<String> {
        let text = self.text()?;
        if is_variable_name(&text) {
            return Some(text);
        }
        self.fault("not the name of an environment variable; accepted: a name such as GEMINI_API_KEY".to_owned());
        None
    }

    pub(crate) fn url(&self) -> Option<String> {
        let text = self.text()?;
        let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        if rest.is_some_and(|rest| !rest.is_empty()) {
            return Some(text);
        }
        self.expected("a URL that begins with http:// or https://");
        None
    }

    pub(crate) fn flag(&self) -> Option<bool> {
        let value = match self.data() {
            Data::Flag(yes) => Some(*yes),
            Data::Text(_) => self.text()?.parse().ok(),
            Data::Null | Data::Integer(_) | Data::Number(_) | Data::List(_) | Data::Map(_) => None,
        };
        if value.is_none() {
            self.expected("true, false");
        }
        value
    }

    pub(crate) fn number(&self, range: RangeInclusive<u32>) -> Option<u32> {
        let value = match self.data() {
            Data::Integer(number) => u32::try_from(*number).ok(),
            Data::Text(_) => self.text()?.trim().parse().ok(),
            Data::Null | Data::Flag(_) | Data::Number(_) | Data::List(_) | Data::Map(_) => None,
        };
        self.within(value, range, |number| number.to_string(), "a whole number")
    }

    /// An amount of money.
    pub(crate) fn amount(&self) -> Option<f64> {
        let value = match self.data() {
            Data::Integer(number) => u32::try_from(*number).ok().map(f64::from),
            Data::Number(number) => Some(*number),
            Data::Text(_) => self.text()?.trim().parse().ok(),
            Data::Null | Data::Flag(_) | Data::List(_) | Data::Map(_) => None,
        };
        let value = value.filter(|amount| amount.is_finite() && *amount >= 0.0);
        if value.is_none() {
            self.expected("a number from 0");
        }
        value
    }

    pub(crate) fn duration(&self, range: RangeInclusive<Duration>) -> Option<Duration> {
        let value = match self.data() {
            Data::Integer(0) => Some(Duration::ZERO),
            Data::Text(_) => parse_duration(&self.text()?),
            Data::Null | Data::Flag(_) | Data::Integer(_) | Data::Number(_) | Data::List(_) | Data::Map(_) => None,
        };
        self.within(value, range, show_duration, "a duration such as 30s, 2m, 1h")
    }

    pub(crate) fn bytes(&self, range: RangeInclusive<u64>) -> Option<u64> {
        let value = match self.data() {
            Data::Integer(number) => u64::try_from(*number).ok(),
            Data::Text(_) => parse_bytes(&self.text()?),
            Data::Null | Data::Flag(_) | Data::Number(_) | Data::List(_) | Data::Map(_) => None,
        };
        self.within(value, range, show_bytes, "a size such as 512KiB, 8MiB")
    }

    pub(crate) fn tokens(&self, range: RangeInclusive<u64>) -> Option<u64> {
        let value = match self.data() {
            Data::Integer(number) => u64::try_from(*number).ok(),
            Data::Text(_) => parse_tokens(&self.text()?),
            Data::Null | Data::Flag(_) | Data::Number(_) | Data::List(_) | Data::Map(_) => None,
        };
        self.within(value, range, show_tokens, "a number of tokens such as 128k, 1M")
    }

    fn within<T: PartialOrd + Copy>(
        &self,
        value: Option<T>,
        range: RangeInclusive<T>,
        show: fn(T) -> String,
        what: &str,
    ) -> Option<T> {
        let value = value.filter(|value| range.contains(value));
        if value.is_none() {
            self.expected(&format!("{what} ({} to {})", show(*range.start()), show(*range.end())));
        }
        value
    }

    pub(crate) fn list(&self) -> Option<Vec<Self>> {
        match self.data() {
            Data::List(items) => Some(items.iter().enumerate().map(|(index, item)| self.item(index, item)).collect()),
            Data::Null | Data::Flag(_) | Data::Integer(_) | Data::Number(_) | Data::Text(_) | Data::Map(_) => {
                self.expected("a list");
                None
            }
        }
    }

    fn item(&self, index: usize, node: &'c Node) -> Self {
        let path = format!("{}[{index}]", self.path);
        Self { context: self.context, path, line: node.line, node: Some(node) }
    }

    /// A mapping; empty for an absent value and after a fault.
    pub(crate) fn map(&self) -> Map<'c> {
        let pairs: &[(Node, Node)] = match self.data() {
            Data::Map(pairs) => pairs,
            Data::Null => &[],
            Data::Flag(_) | Data::Integer(_) | Data::Number(_) | Data::Text(_) | Data::List(_) => {
                self.expected("a mapping");
                &[]
            }
        };
        Map { field: self.clone(), pairs, known: Vec::new() }
    }
}

/// A mapping that remembers which keys were read.
#[derive(Debug)]
pub(crate) struct Map<'c> {
    field: Field<'c>,
    pairs: &'c [(Node, Node)],
    known: Vec<&'static str>,
}

impl<'c> Map<'c> {
    /// The value of a key; `None` when it is absent or null.
    pub(crate) fn get(&mut self, key: &'static str) -> Option<Field<'c>> {
        self.known.push(key);
        let (name, value) = self.pairs.iter().find(|(name, _)| key_text(name) == key)?;
        (value.data != Data::Null).then(|| self.child(key, name, value))
    }

    /// Whether the key is present and not null.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.pairs.iter().any(|(name, value)| key_text(name) == key && value.data != Data::Null)
    }

    /// Reports a required key as missing.
    pub(crate) fn missing(&self, key: &str, accepted: &str) {
        let path = join(&self.field.path, key);
        self.field.context.fault(path, self.field.line, format!("missing; accepted: {accepted}"));
    }

    pub(crate) fn text(&mut self, key: &'static str) -> Option<String> {
        self.get(key)?.text()
    }

    pub(crate) fn texts(&mut self, key: &'static str) -> Vec<String> {
        let fields = self.get(key).and_then(|field| field.list()).unwrap_or_default();
        fields.iter().filter_map(Field::text).collect()
    }

    /// `secs` is the accepted range in seconds.
    pub(crate) fn duration(&mut self, key: &'static str, secs: RangeInclusive<u64>) -> Option<Duration> {
        self.get(key)?.duration(Duration::from_secs(*secs.start())..=Duration::from_secs(*secs.end()))
    }

    /// All keys with their values, for a mapping with free keys.
    pub(crate) fn entries(&self) -> Vec<(String, Field<'c>)> {
        self.pairs
            .iter()
            .map(|(name, value)| {
                let key = key_text(name);
                let field = self.child(&key, name, value);
                (key, field)
            })
            .collect()
    }

    /// Reports the keys that were not read as unknown.
    pub(crate) fn finish(self) {
        for (name, _) in self.pairs {
            let key = key_text(name);
            if !self.known.contains(&key.as_str()) {
                let hint = hint(&key, &self.known);
                let problem = format!("unknown key; accepted: {}{hint}", self.known.join(", "));
                self.field.context.fault(join(&self.field.path, &key), name.line, problem);
            }
        }
    }

    fn child(&self, key: &str, name: &Node, value: &'c Node) -> Field<'c> {
        Field { context: self.field.context, path: join(&self.field.path, key), line: name.line, node: Some(value) }
    }
}

pub(crate) fn key_text(name: &Node) -> String {
    match &name.data {
        Data::Text(text) => text.clone(),
        Data::Flag(yes) => yes.to_string(),
        Data::Integer(number) => number.to_string(),
        Data::Number(number) => number.to_string(),
        Data::Null => "~".to_owned(),
        Data::List(_) | Data::Map(_) => "?".to_owned(),
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn hint(word: &str, known: &[&str]) -> String {
    did_you_mean(word, known).map(|meant| format!(" (did you mean {meant}?)")).unwrap_or_default()
}
