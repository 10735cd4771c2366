//! Where each field of an alert came from, for `inspect alert --why`.

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
    /// A header names a source that does not exist.
    UnknownSource(String),
    /// No source fits: the body is read as JSON or text of any form.
    Unrecognised,
}
