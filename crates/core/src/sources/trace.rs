//! The origin of each field of an alert, for `inspect alert --why`.

use std::fmt;

/// A field of an alert with its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// The key of the source: `title`, `severity`, `key`.
    pub field: &'static str,
    /// The value in one line; empty if it is absent.
    pub value: String,
    pub origin: Origin,
}

/// The origin of a field's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A pointer, name or template, as written, and the text there.
    At { place: String, text: String },
    /// The place has no text, as in `nothing at /alert/title`.
    Nothing(String),
    /// A rule, as the words after "because".
    Rule(String),
}

impl Traced {
    /// A value that is the text at a place.
    pub fn text(field: &'static str, place: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            field,
            value: text.clone(),
            origin: Origin::At {
                place: place.into(),
                text,
            },
        }
    }

    /// A value that the word at a place means.
    pub fn word(
        field: &'static str,
        place: impl Into<String>,
        word: impl Into<String>,
        meaning: &str,
    ) -> Self {
        Self {
            value: meaning.to_owned(),
            ..Self::text(field, place, word)
        }
    }

    pub fn rule(field: &'static str, value: impl Into<String>, because: impl Into<String>) -> Self {
        Self {
            field,
            value: value.into(),
            origin: Origin::Rule(because.into()),
        }
    }

    pub fn nothing(field: &'static str, place: impl Into<String>) -> Self {
        Self {
            field,
            value: String::new(),
            origin: Origin::Nothing(place.into()),
        }
    }

    /// The value, with the word that means it: `resolved (OK)`.
    pub fn shown(&self) -> String {
        match &self.origin {
            Origin::At { text, .. } if *text != self.value => format!("{} ({text})", self.value),
            Origin::At { .. } | Origin::Nothing(_) | Origin::Rule(_) => self.value.clone(),
        }
    }

    /// The reason, as the words after "because".
    pub fn because(&self) -> String {
        match &self.origin {
            Origin::At { place, text } => format!("{place} is {text:?}"),
            Origin::Nothing(place) => format!("there is {place}"),
            Origin::Rule(because) => because.clone(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At { place: text, .. } | Self::Nothing(text) | Self::Rule(text) => {
                f.write_str(text)
            }
        }
    }
}

/// An unusual property of a message. The message is read nevertheless.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Note {
    /// The body has no part of the key: the fingerprint is a hash of the body.
    #[error("no part of the key is there: the fingerprint is a hash of the body")]
    NoKey,
    /// A word that is no status; the alert counts as firing.
    #[error("{0:?} is no known status: the alert counts as firing")]
    UnknownStatus(String),
    /// A word that is no severity.
    #[error("{0:?} is no known severity")]
    UnknownSeverity(String),
    /// Two fields that do not say the same; the worse one counts.
    #[error("{0}: the worse one counts")]
    Differ(String),
    /// A time in the past is the end of the alert.
    #[error("{0}, which is over: the alert counts as resolved")]
    Ended(String),
    /// A header names a source that does not exist.
    #[error("there is no source {0:?}: the rules of all sources were tried")]
    UnknownSource(String),
    /// The body has another form than the source of its path. What it was read as.
    #[error("the body does not fit the source of its path: it was read {0}")]
    OtherForm(String),
    /// No source fits the body: it is read as JSON or text of any form.
    #[error(
        "no source knows this body: it is read by the names of its fields; tarsy sources init writes a source"
    )]
    Unrecognised,
    /// The body was not written as its format asks for.
    #[error("{0}")]
    Repaired(Repair),
    /// The number of members of a list that were no alerts: null, a number, an empty object.
    #[error("members of the list that were no alerts: {0}")]
    NoAlerts(usize),
    /// The number of members of a list that were not read because there are too many; the worst ones were read.
    #[error("members of the list that were not read, none of them worse: {0}")]
    Unread(usize),
}

/// A deviation of a body from its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Repair {
    #[error("the body was compressed, and no header said so")]
    Compressed,
    #[error("a header said that the body is compressed, and it was not")]
    NotCompressed,
    #[error("the compressed body was damaged or longer than 32 MiB, so its end is missing")]
    CutCompressed,
    #[error("the body was not UTF-8, so it was read as {0}")]
    Charset(&'static str),
    #[error("bytes that are no character were replaced")]
    BadBytes,
    #[error("the JSON was in a JSON text")]
    JsonInText,
    #[error("several JSON values were read as a list")]
    Lines,
    #[error("the fields of a form were read")]
    Form,
    #[error("the elements of XML were read as fields")]
    Xml,
    #[error("the JSON had control characters in a text, such as a line break")]
    Controls,
    #[error(
        "the JSON had escapes that do not exist, such as \\T: the backslash is a part of the text"
    )]
    Escapes,
    #[error("the JSON had half a character, which was replaced")]
    Surrogates,
    #[error("the JSON had a number that JSON does not have, which was read as a text")]
    Numbers,
    #[error("the JSON had a comma or a bracket too many or too few")]
    Commas,
    #[error("the JSON had quotes inside of a text, or other quotes than JSON has")]
    Quotes,
    #[error("the JSON had words without quotes, or no value behind a key")]
    Words,
    #[error("the JSON ended too early")]
    CutJson,
}

impl Note {
    /// Whether the investigation has to know it.
    pub(crate) fn is_for_the_reader(&self) -> bool {
        match self {
            Self::Differ(_)
            | Self::Ended(_)
            | Self::OtherForm(_)
            | Self::Repaired(_)
            | Self::NoAlerts(_)
            | Self::Unread(_) => true,
            Self::NoKey
            | Self::UnknownStatus(_)
            | Self::UnknownSeverity(_)
            | Self::UnknownSource(_)
            | Self::Unrecognised => false,
        }
    }
}
