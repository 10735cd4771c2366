//! The sources of a configuration, and the choice of the source that a body belongs to.

use serde_json::Value;

use super::document::Document;
use super::pointer::Pointer;
use super::rule::Rule;
use super::source::{Source, TagRef};
use crate::alert::AlertStatus;

/// A source by its name.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedSource {
    /// The prefix of its fingerprints, and the end of its path `/hooks/<name>`.
    pub name: String,
    pub reader: Reader,
}

/// The reader for the bodies of a source.
#[derive(Clone, Debug, PartialEq)]
pub enum Reader {
    Declared(Box<Source>),
    /// Alertmanager's webhook and its API. Code reads them, and these references.
    Alertmanager(Vec<TagRef>),
    /// Grafana's webhook since version 9. Code reads it, and these references.
    Grafana(Vec<TagRef>),
}

/// All sources. Those of the user come first, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sources {
    users: Vec<NamedSource>,
    builtin: Vec<NamedSource>,
    /// The texts that a source reads as JSON.
    embedded: Vec<Pointer>,
}

impl Sources {
    /// A user's source replaces the built-in one of its name.
    pub fn new(users: Vec<NamedSource>, builtin: Vec<NamedSource>) -> Self {
        let builtin: Vec<NamedSource> = builtin
            .into_iter()
            .filter(|source| !users.iter().any(|user| user.name == source.name))
            .collect();
        let declared = users
            .iter()
            .chain(&builtin)
            .filter_map(NamedSource::declared);
        let mut embedded: Vec<Pointer> = declared
            .flat_map(|source| source.parse.iter().cloned())
            .collect();
        embedded.sort();
        embedded.dedup();
        Self {
            users,
            builtin,
            embedded,
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &NamedSource> {
        self.users.iter().chain(&self.builtin)
    }

    /// The source of a name.
    pub fn get(&self, name: &str) -> Option<&NamedSource> {
        self.iter().find(|source| source.name == name)
    }

    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// All sources whose rule fits, in the order of recognition. A body of a vendor fits one.
    pub fn fitting(&self, body: &Value) -> Vec<&NamedSource> {
        let document = Document::new(body, &self.embedded);
        self.iter()
            .filter(|source| source.fits(&document))
            .collect()
    }

    /// The first of the user's sources whose rule fits.
    pub fn of_user(&self, body: &Value) -> Option<&NamedSource> {
        let document = Document::new(body, &self.embedded);
        self.users.iter().find(|source| source.fits(&document))
    }

    /// The built-in source whose rule fits. Should several fit, the one with the strictest rule counts.
    pub(crate) fn of_builtin(&self, body: &Value) -> Option<&NamedSource> {
        let document = Document::new(body, &self.embedded);
        let fitting = self.builtin.iter().filter(|source| source.fits(&document));
        fitting.rev().max_by_key(|source| source.strength())
    }
}

impl NamedSource {
    pub fn declared(&self) -> Option<&Source> {
        match &self.reader {
            Reader::Declared(source) => Some(source),
            Reader::Alertmanager(_) | Reader::Grafana(_) => None,
        }
    }

    /// The references in labels and annotations, of a source that code reads.
    pub fn tag_refs(&self) -> &[TagRef] {
        match &self.reader {
            Reader::Declared(_) => &[],
            Reader::Alertmanager(refs) | Reader::Grafana(refs) => refs,
        }
    }

    /// The statuses that the alerts of the source can have.
    pub fn statuses(&self) -> Vec<AlertStatus> {
        match &self.reader {
            Reader::Declared(source) => source.statuses(),
            Reader::Alertmanager(_) => vec![
                AlertStatus::Firing,
                AlertStatus::Resolved,
                AlertStatus::Ignored,
            ],
            Reader::Grafana(_) => vec![
                AlertStatus::Firing,
                AlertStatus::Resolved,
                AlertStatus::Test,
            ],
        }
    }

    /// Whether only its name leads to it, because it has no rule.
    pub fn is_only_named(&self) -> bool {
        match &self.reader {
            Reader::Declared(source) => source.recognise.is_empty(),
            Reader::Alertmanager(_) => self.name != "alertmanager",
            Reader::Grafana(_) => self.name != "grafana",
        }
    }

    /// Whether the rule of this source fits a body, as far as it has one.
    pub fn accepts(&self, body: &Value) -> bool {
        let Some(source) = self.declared() else {
            return true;
        };
        source.recognise.is_empty() || self.fits_body(body)
    }

    /// Whether the rule of the source fits a body.
    pub(crate) fn fits_body(&self, body: &Value) -> bool {
        let parse = self
            .declared()
            .map(|source| source.parse.as_slice())
            .unwrap_or_default();
        self.fits(&Document::new(body, parse))
    }

    fn fits(&self, document: &Document<'_>) -> bool {
        let source = self.declared();
        source.is_some_and(|source| {
            source
                .recognise
                .iter()
                .any(|rule| rule.fits(document, &source.parse))
        })
    }

    fn strength(&self) -> usize {
        let rules = self
            .declared()
            .into_iter()
            .flat_map(|source| &source.recognise);
        rules.map(Rule::strength).max().unwrap_or_default()
    }
}
