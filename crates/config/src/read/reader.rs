//! Reads typed values from a YAML tree and collects all faults instead of stopping at the first one.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::context::Context;
use super::fault::did_you_mean;
pub use super::map::Map;
use super::names::Names;
use super::template::{Template, is_variable_name};
use super::units::{
    parse_bytes, parse_duration, parse_tokens, show_bytes, show_duration, show_tokens,
};
use super::yaml::{Data, Node};

/// A node with its path. A method that returns `None` has reported the fault.
#[derive(Clone, Debug)]
pub struct Field<'c> {
    pub(super) context: &'c Context<'c>,
    pub(super) path: String,
    pub(super) line: usize,
    pub(super) node: Option<&'c Node>,
}

impl<'c> Field<'c> {
    pub fn root(context: &'c Context<'c>, node: &'c Node) -> Self {
        Self {
            context,
            path: String::new(),
            line: node.line,
            node: Some(node),
        }
    }

    pub(crate) fn fault(&self, problem: String) {
        self.context.fault(self.path.clone(), self.line, problem);
    }

    /// Reports a word that is not one of the accepted ones.
    fn not_accepted(&self, accepted: &[&str]) {
        let list: Vec<&str> = accepted
            .iter()
            .map(|word| if word.is_empty() { "\"\"" } else { word })
            .collect();
        let hint = if let Data::Text(text) = self.data() {
            hint(text, accepted)
        } else {
            String::new()
        };
        self.fault(format!(
            "{}; accepted: {}{hint}",
            self.seen(),
            list.join(", ")
        ));
    }

    /// Reports a value of another kind than the accepted one.
    pub fn expected(&self, accepted: &str) {
        self.fault(format!("{}; accepted: {accepted}", self.seen()));
    }

    /// Reports a value that is no mapping, list or text at all.
    pub(crate) fn wrong_kind(&self, kind: &str) {
        self.fault(format!("{}; expected {kind}", self.seen()));
    }

    pub(super) fn data(&self) -> &'c Data {
        self.node.map_or(&Data::Null, |node| &node.data)
    }

    pub(crate) fn is_text(&self) -> bool {
        matches!(self.data(), Data::Text(_))
    }

    pub(crate) fn is_map(&self) -> bool {
        matches!(self.data(), Data::Map(_))
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
        self.expanded().map(|(template, _)| template)
    }

    /// A text with its variables resolved.
    pub fn text(&self) -> Option<String> {
        self.expanded().map(|(_, text)| text)
    }

    fn expanded(&self) -> Option<(Template, String)> {
        let Data::Text(text) = self.data() else {
            let is_scalar = matches!(
                self.data(),
                Data::Flag(_) | Data::Integer(_) | Data::Number(_)
            );
            self.expected(if is_scalar {
                "a text (write it in quotes)"
            } else {
                "a text"
            });
            return None;
        };
        let template = Template::new(text);
        match self.context.resolve(&template) {
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

    /// The value that the text names; `word` gives the word of each value.
    pub(crate) fn choice<T: Copy>(&self, values: &[T], word: fn(T) -> &'static str) -> Option<T> {
        let text = self.text()?;
        let known = values.iter().copied().find(|value| word(*value) == text);
        if known.is_none() {
            self.not_accepted(&values.iter().copied().map(word).collect::<Vec<_>>());
        }
        known
    }

    /// A name that is defined elsewhere in the file.
    pub fn reference(&self, defined: &[String]) -> Option<String> {
        let text = self.text()?;
        if defined.contains(&text) {
            return Some(text);
        }
        let words: Vec<&str> = defined.iter().map(String::as_str).collect();
        let list = if words.is_empty() {
            "nothing".to_owned()
        } else {
            words.join(", ")
        };
        self.fault(format!(
            "{} is not defined; defined: {list}{}",
            self.seen(),
            hint(&text, &words)
        ));
        None
    }

    /// The name of an environment variable. Any other text may be the secret itself, so it is not shown.
    pub(crate) fn variable_name(&self) -> Option<String> {
        let text = self.text()?;
        if is_variable_name(&text) {
            return Some(text);
        }
        self.fault(
            "not the name of an environment variable; accepted: a name such as GEMINI_API_KEY"
                .to_owned(),
        );
        None
    }

    /// An address without a user name, a query and a fragment, because these may contain a key. The value is not part
    /// of their fault.
    pub(crate) fn url(&self) -> Option<String> {
        let text = self.text()?;
        if text.contains(['?', '#', '@']) {
            self.fault(
                "a URL with a user name, a query or a fragment; they may contain a key, so leave them out".into(),
            );
            return None;
        }
        let rest = text
            .strip_prefix("http://")
            .or_else(|| text.strip_prefix("https://"));
        if rest.is_some_and(|rest| !rest.is_empty()) {
            return Some(text);
        }
        self.expected("a URL that begins with http:// or https://");
        None
    }

    pub(crate) fn flag(&self) -> Option<bool> {
        self.parsed(|text| text.parse().ok(), "true, false")
    }

    pub fn number(&self, range: RangeInclusive<u32>) -> Option<u32> {
        self.within(
            |text| text.trim().parse().ok(),
            range,
            |number| number.to_string(),
            "a whole number",
        )
    }

    /// `secs` is the accepted range in seconds.
    pub(crate) fn duration(&self, secs: RangeInclusive<u64>) -> Option<Duration> {
        let range = Duration::from_secs(*secs.start())..=Duration::from_secs(*secs.end());
        self.within(
            parse_duration,
            range,
            show_duration,
            "a duration such as 30s, 2m, 1h",
        )
    }

    pub(crate) fn bytes(&self, range: RangeInclusive<u64>) -> Option<u64> {
        self.within(
            parse_bytes,
            range,
            show_bytes,
            "a size such as 512KiB, 8MiB",
        )
    }

    pub(crate) fn tokens(&self, range: RangeInclusive<u64>) -> Option<u64> {
        self.within(
            parse_tokens,
            range,
            show_tokens,
            "a number of tokens such as 128k, 1M",
        )
    }

    pub(crate) fn decimal(&self, range: RangeInclusive<f64>) -> Option<f64> {
        self.within(
            |text| text.trim().parse().ok(),
            range,
            |number| number.to_string(),
            "a number",
        )
    }

    /// An amount of money.
    pub(crate) fn amount(&self) -> Option<f64> {
        self.parsed(
            |text| {
                let amount: f64 = text.trim().parse().ok()?;
                (amount.is_finite() && amount >= 0.0).then_some(amount)
            },
            "a number from 0",
        )
    }

    fn within<T: PartialOrd + Copy>(
        &self,
        parse: impl FnOnce(&str) -> Option<T>,
        range: RangeInclusive<T>,
        show: fn(T) -> String,
        what: &str,
    ) -> Option<T> {
        let accepted = format!(
            "{what} ({} to {})",
            show(*range.start()),
            show(*range.end())
        );
        self.parsed(
            |text| parse(text).filter(|value| range.contains(value)),
            &accepted,
        )
    }

    fn parsed<T>(&self, parse: impl FnOnce(&str) -> Option<T>, accepted: &str) -> Option<T> {
        let value = parse(&self.scalar()?);
        if value.is_none() {
            self.expected(accepted);
        }
        value
    }

    /// A flag, number or text as text, with its variables resolved; empty for anything else.
    fn scalar(&self) -> Option<String> {
        match self.data() {
            Data::Text(_) => self.text(),
            Data::Flag(yes) => Some(yes.to_string()),
            Data::Integer(number) => Some(number.to_string()),
            // This form of a whole number (`2.0`) is no integer, either.
            Data::Number(number) => Some(format!("{number:?}")),
            Data::Null | Data::List(_) | Data::Map(_) => Some(String::new()),
        }
    }

    pub fn list(&self) -> Option<Vec<Self>> {
        let Data::List(items) = self.data() else {
            self.wrong_kind("a list");
            return None;
        };
        let fields = items.iter().enumerate().map(|(index, node)| Self {
            context: self.context,
            path: format!("{}[{index}]", self.path),
            line: node.line,
            node: Some(node),
        });
        Some(fields.collect())
    }

    /// Reads a mapping, and reports the keys that `read` has not asked for.
    pub fn section<T>(&self, read: impl FnOnce(&mut Map<'c>) -> T) -> T {
        let mut map = self.map();
        let section = read(&mut map);
        map.finish();
        section
    }

    /// A mapping with free keys; empty for an absent value and after a fault.
    pub(crate) fn entries(&self) -> Vec<(String, Self)> {
        let pairs = self.map().pairs;
        let entries = pairs.iter().map(|(name, value)| {
            let key = key_text(name);
            let field = self.below(&key, name, value);
            (key, field)
        });
        entries.collect()
    }

    /// The value of a key; `None` when it is absent or null.
    pub(crate) fn get(&self, key: &str) -> Option<Self> {
        let Data::Map(pairs) = self.data() else {
            return None;
        };
        let (name, value) = pairs.iter().find(|(name, _)| key_text(name) == key)?;
        (value.data != Data::Null).then(|| self.below(key, name, value))
    }

    /// Whether the key is present and not null.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// The value of a key; itself if the key is absent.
    pub(crate) fn at(&self, key: &str) -> Self {
        self.get(key).unwrap_or_else(|| self.clone())
    }

    /// The items of a list below this value; empty for anything else.
    pub(crate) fn items(&self, key: &str) -> Vec<Self> {
        self.get(key)
            .map(|field| field.list_items())
            .unwrap_or_default()
    }

    /// The items of a list, without a fault; empty for anything else.
    pub(crate) fn list_items(&self) -> Vec<Self> {
        let is_list = matches!(self.data(), Data::List(_));
        let items = is_list.then(|| self.list()).flatten();
        items.unwrap_or_default()
    }

    /// Reports a required key as missing. A value that is no mapping has that fault only.
    pub(crate) fn missing(&self, key: &str, accepted: &str) {
        if matches!(self.data(), Data::Map(_) | Data::Null) {
            let problem = format!("missing; accepted: {accepted}");
            self.context
                .fault(join(&self.path, key), self.line, problem);
        }
    }

    fn below(&self, key: &str, name: &Node, value: &'c Node) -> Self {
        Self {
            context: self.context,
            path: join(&self.path, key),
            line: name.line,
            node: Some(value),
        }
    }

    /// The names that the file defines.
    pub(crate) fn names(&self) -> &'c Names {
        &self.context.names
    }

    /// The text with its variables resolved, without a fault.
    pub(crate) fn resolved(&self) -> Option<String> {
        if let Data::Text(text) = self.data() {
            self.context.resolve(&Template::new(text)).ok()
        } else {
            None
        }
    }

    /// The number of faults of the file so far.
    pub(crate) fn faults(&self) -> usize {
        self.context.faults()
    }

    /// Sorts the faults after the first `from` ones by the position of their paths below this one.
    pub(crate) fn in_order(&self, from: usize, position: impl Fn(&str) -> Vec<usize>) {
        self.context.sort_by_key(from, |fault| {
            position(fault.key.strip_prefix(&self.path).unwrap_or_default())
        });
    }

    fn map(&self) -> Map<'c> {
        let pairs: &[(Node, Node)] = match self.data() {
            Data::Map(pairs) => pairs,
            Data::Null => &[],
            Data::Flag(_) | Data::Integer(_) | Data::Number(_) | Data::Text(_) | Data::List(_) => {
                self.wrong_kind("a mapping");
                &[]
            }
        };
        Map::new(self.clone(), pairs)
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

pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

pub(super) fn hint(word: &str, known: &[&str]) -> String {
    did_you_mean(word, known)
        .map(|meant| format!(" (did you mean {meant}?)"))
        .unwrap_or_default()
}
