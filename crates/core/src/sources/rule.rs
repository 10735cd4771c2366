//! The rule that recognises the bodies of a source: fields that exist, fields with a certain word, and fields that
//! are absent.

use serde_json::Value;

use super::document::Document;
use super::pointer::Pointer;
use super::view::{View, scalar};
use super::words::WordTable;

/// The rule by which a source recognises its bodies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// Fields that exist; their value may be null.
    pub has: Vec<Pointer>,
    pub equals: Vec<Condition>,
    /// Fields that do not exist.
    pub lacks: Vec<Pointer>,
}

/// A field that has one of several words.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    pub pointer: Pointer,
    pub words: WordTable<()>,
}

/// A field that a test message has.
#[derive(Clone, Debug, PartialEq)]
pub struct TestSign {
    pub pointer: Pointer,
    /// The values of a test message; one of these signs is enough.
    pub signs: Vec<Sign>,
}

/// The value of a field in a test message.
#[derive(Clone, Debug, PartialEq)]
pub enum Sign {
    /// The field is this text, as the vendor writes it.
    Equals(String),
    /// The field begins with it.
    Begins(String),
    /// The field exists and has this number, bool or null.
    Is(Value),
}

impl Rule {
    /// The pointers that have to exist.
    pub fn strength(&self) -> usize {
        self.has.len() + self.equals.len()
    }

    /// Whether a body fits. Texts are read as JSON only when all that needs none of them fits.
    pub(super) fn fits(&self, document: &Document<'_>, parse: &[Pointer]) -> bool {
        let plain = self
            .has
            .iter()
            .filter(|pointer: &&Pointer| !parse.iter().any(|above| pointer.below(above).is_some()))
            .all(|pointer| document.find(pointer, &[]).is_some());
        plain
            && self
                .has
                .iter()
                .all(|pointer| document.find(pointer, parse).is_some())
            && self.equals.iter().all(|condition| {
                let word = document.find(&condition.pointer, parse).and_then(scalar);
                word.is_some_and(|word| condition.words.get(&word).is_some())
            })
            && !self
                .lacks
                .iter()
                .any(|pointer| document.find(pointer, parse).is_some())
    }
}

impl Condition {
    /// The word that fulfils the condition.
    pub(super) fn met(&self, view: &View<'_>) -> Option<String> {
        view.text(&self.pointer)
            .filter(|word| self.words.get(word).is_some())
    }
}

impl TestSign {
    pub(super) fn is_seen(&self, view: &View<'_>) -> bool {
        let Some(value) = view.find(&self.pointer) else {
            return false;
        };
        self.signs.iter().any(|sign| match sign {
            Sign::Equals(text) => scalar(value).is_some_and(|found| found == *text),
            Sign::Begins(text) => scalar(value).is_some_and(|found| found.starts_with(text)),
            Sign::Is(expected) if expected.is_null() => value.is_null(),
            Sign::Is(expected) => scalar(value) == scalar(expected),
        })
    }
}
