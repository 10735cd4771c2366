//! A mapping of a file whose keys are known to its reader: the others are reported.

use super::reader::{Field, hint, join, key_text};
use super::yaml::Node;

/// A mapping that remembers which keys were read.
#[derive(Debug)]
pub struct Map<'c> {
    field: Field<'c>,
    pub(super) pairs: &'c [(Node, Node)],
    known: Vec<String>,
}

impl<'c> Map<'c> {
    pub(super) fn new(field: Field<'c>, pairs: &'c [(Node, Node)]) -> Self {
        Self {
            field,
            pairs,
            known: Vec::new(),
        }
    }

    /// The mapping itself.
    pub(crate) fn field(&self) -> &Field<'c> {
        &self.field
    }

    /// The value of a key; `None` when it is absent or null.
    pub(crate) fn get(&mut self, key: &str) -> Option<Field<'c>> {
        self.known.push(key.to_owned());
        self.field.get(key)
    }

    /// Whether the key is present and not null.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.field.has(key)
    }

    /// The value of a required key; reports the key if it is missing.
    pub fn required(&mut self, key: &'static str, accepted: &str) -> Option<Field<'c>> {
        let field = self.get(key);
        if field.is_none() {
            self.missing(key, accepted);
        }
        field
    }

    /// Reports a required key as missing. A value that is no mapping has that fault only.
    pub fn missing(&self, key: &str, accepted: &str) {
        self.field.missing(key, accepted);
    }

    pub fn text(&mut self, key: &'static str) -> Option<String> {
        self.get(key)?.text()
    }

    /// The items of a list that `read` accepts.
    pub fn list<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&Field<'c>) -> Option<T>,
    ) -> Option<Vec<T>> {
        Some(self.get(key)?.list()?.iter().filter_map(read).collect())
    }

    pub fn texts(&mut self, key: &'static str) -> Vec<String> {
        self.list(key, Field::text).unwrap_or_default()
    }

    /// A mapping; the default for an absent one.
    pub fn section<T: Default>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.get(key)
            .map(|field| field.section(read))
            .unwrap_or_default()
    }

    /// Reports the keys that were not read as unknown.
    pub(super) fn finish(self) {
        let known: Vec<&str> = self.known.iter().map(String::as_str).collect();
        for (name, _) in self.pairs {
            let key = key_text(name);
            if !known.contains(&key.as_str()) {
                let hint = hint(&key, &known);
                let problem = format!("unknown key; accepted: {}{hint}", known.join(", "));
                self.field
                    .context
                    .fault(join(&self.field.path, &key), name.line, problem);
            }
        }
    }
}
