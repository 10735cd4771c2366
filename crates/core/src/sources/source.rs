//! A source: the rules to recognise and read the bodies of one vendor. A plain value, made from YAML by the
//! configuration.

use serde_json::Value;

use super::capture::Capture;
use super::expression::Expression;
use super::labels::LabelSource;
use super::pointer::Pointer;
use super::rule::{Condition, Rule, TestSign};
use super::view::View;
use super::words::WordTable;
use crate::alert::{AlertStatus, Severity};

/// The declaration of a source. An absent list is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Source {
    /// The rules that recognise a body, of which one has to fit. A source that is only named has none.
    pub recognise: Vec<Rule>,
    pub ignore: Vec<Condition>,
    /// Texts in the body that are JSON.
    pub parse: Vec<Pointer>,
    /// The same in an element.
    pub parse_element: Vec<Pointer>,
    pub each: Option<Pointer>,
    pub capture: Option<Capture>,
    pub alert_type: Option<Expression>,
    pub title: Option<Expression>,
    pub severity: Words<Severity>,
    pub status: Words<AlertStatus>,
    pub test: Vec<TestSign>,
    /// The lists of a key, which are never empty; the first complete one counts.
    pub key: Vec<Vec<Expression>>,
    pub labels: Vec<LabelSource>,
    pub links: Vec<LinkSource>,
    pub runbook: Option<Expression>,
    pub refs: Vec<RefSource>,
    pub at: Option<Expression>,
    /// The fields that the investigation reads; `None` for all.
    pub text: Option<Vec<Pointer>>,
}

/// A link by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkSource {
    pub name: String,
    pub url: Expression,
}

/// The sender's own id of something, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefSource {
    pub name: String,
    pub id: Expression,
}

/// The same in an alert that code reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagRef {
    pub name: String,
    pub tag: Tag,
}

/// A label or an annotation, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tag {
    Label(String),
    Annotation(String),
}

/// A value that words of the body give.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Words<T> {
    pub from: Option<Expression>,
    pub map: WordTable<T>,
    pub default: Option<T>,
}

impl Source {
    /// Whether a body without a rule that fits is nevertheless one of this source: its key is there, and a word of its
    /// table gives the status.
    pub fn understands(&self, body: &Value) -> bool {
        let mapped = self.map(body, None);
        let said = self
            .status
            .from
            .as_ref()
            .and_then(|from| from.find(&View::new(body, None)));
        let is_known = said.is_some_and(|found| self.status.map.get(&found.text).is_some());
        self.each.is_none() && is_known && !mapped.key.is_absent()
    }

    /// Whether its body is a list.
    pub(crate) fn takes_lists(&self) -> bool {
        self.each
            .as_ref()
            .is_some_and(|each| *each == Pointer::body())
    }

    /// The statuses that the declaration gives. Where no word of its table ends an alert, the shared words do.
    pub fn statuses(&self) -> Vec<AlertStatus> {
        let Words { from, map, default } = &self.status;
        let mut known: Vec<AlertStatus> = map.values().chain(*default).collect();
        if default.is_none() {
            known.push(AlertStatus::Firing);
        }
        if from.is_some() && !known.contains(&AlertStatus::Resolved) {
            known.extend([AlertStatus::Resolved, AlertStatus::Acknowledged]);
        }
        if !self.test.is_empty() {
            known.push(AlertStatus::Test);
        }
        if !self.ignore.is_empty() || self.each.is_some() {
            known.push(AlertStatus::Ignored);
        }
        AlertStatus::ALL
            .into_iter()
            .filter(|status| known.contains(status))
            .collect()
    }
}
