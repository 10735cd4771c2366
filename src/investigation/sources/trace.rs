//! Where each field of an alert came from, for `inspect alert --why`.

use std::fmt;

/// One field of an alert with its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// The key of the source: `title`, `severity`, `key`.
    pub field: &'static str,
    /// The pointer, name or template that gave the value, as written; or a word for the reason that none did.
    pub from: String,
    /// One line; empty for an absent value.
    pub value: String,
}

/// What was unusual about a message. The message is read nevertheless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// No part of the key exists: the fingerprint is a hash of the body.
    NoKey,
    /// A word that is no status; the alert counts as firing.
    UnknownStatus(String),
    /// A word that is no severity.
    UnknownSeverity(String),
    /// Two fields that do not say the same; the worse one counts.
    Differ(String),
    /// A time in the past is the end of the alert.
    Ended(String),
    /// A header names a source that does not exist.
    UnknownSource(String),
    /// The body has another form than the source of its path. What it was read as.
    OtherForm(String),
    /// No source fits: the body is read as JSON or text of any form.
    Unrecognised,
}

impl Note {
    /// Whether the investigation has to know it.
    pub fn is_for_the_reader(&self) -> bool {
        match self {
            Self::Differ(_) | Self::Ended(_) | Self::OtherForm(_) => true,
            Self::NoKey
            | Self::UnknownStatus(_)
            | Self::UnknownSeverity(_)
            | Self::UnknownSource(_)
            | Self::Unrecognised => false,
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoKey => write!(f, "no part of the key is there: the fingerprint is a hash of the body"),
            Self::UnknownStatus(word) => write!(f, "{word:?} is no known status: the alert counts as firing"),
            Self::UnknownSeverity(word) => write!(f, "{word:?} is no known severity"),
            Self::Differ(fields) => write!(f, "{fields}: the worse one counts"),
            Self::Ended(field) => write!(f, "{field}, which is over: the alert counts as resolved"),
            Self::UnknownSource(name) => write!(f, "there is no source {name:?}: the rules of all sources were tried"),
            Self::OtherForm(read_as) => {
                write!(f, "the body does not fit the source of its path: it was read {read_as}")
            }
            Self::Unrecognised => write!(
                f,
                "no source knows this body: it is read by the names of its fields; tarsy sources init writes a source"
            ),
        }
    }
}
