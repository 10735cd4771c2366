//! The values of one note, by their names in a declaration.

use std::collections::BTreeMap;

use chrono::{SecondsFormat, TimeDelta};
use tarsy_config::sections::destinations::{AM_GROUP, Destination, Name, Piece, Text};
use tarsy_core::notification::Notification;
use tarsy_core::notification::template;

/// The longest time by which the clock of a vendor may lag.
const CLOCK_MARGIN: TimeDelta = TimeDelta::minutes(5);
/// The letters of a hash in hex.
const HASH_LETTERS: usize = 64;

/// The reason why a request cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The alert has no such reference.
    Absent(String),
    /// A value cannot stand in its place.
    Unfit(String),
}

/// The values of a note.
#[derive(Debug)]
pub(super) struct Values<'a> {
    destination: &'a Destination,
    words: template::Values,
    marker: String,
    since: String,
    references: BTreeMap<String, String>,
    secret: &'a str,
    /// The page of a list, from 1.
    pub(super) page: u32,
    /// The items on the pages before it.
    pub(super) seen: u32,
}

impl<'a> Values<'a> {
    pub(super) fn new(
        destination: &'a Destination,
        message: &Notification,
        secret: &'a str,
    ) -> Self {
        let began_at = message.summary.began_at.unwrap_or_default();
        let references = message
            .summary
            .refs
            .iter()
            .filter(|(name, id)| *name != AM_GROUP || is_hash(id))
            .map(|(name, id)| (name.to_owned(), id.to_owned()))
            .collect();
        Self {
            destination,
            words: template::Values::of_notification(message),
            marker: message.key.marker(),
            since: (began_at - CLOCK_MARGIN).to_rfc3339_opts(SecondsFormat::Secs, true),
            references,
            secret,
            page: 1,
            seen: 0,
        }
    }

    pub(super) fn marker(&self) -> &str {
        &self.marker
    }

    /// The names of the needed references that are absent.
    pub(super) fn missing(&self) -> Vec<&'a str> {
        self.destination
            .needs
            .iter()
            .map(|need| need.name.as_str())
            .filter(|name| !self.references.contains_key(*name))
            .collect()
    }

    /// Adds a reference that the alert does not have.
    pub(super) fn add(&mut self, name: &str, id: String) {
        self.references.entry(name.to_owned()).or_insert(id);
    }

    /// Compares every needed reference with its form.
    ///
    /// # Errors
    /// With the first one that is absent or of another form.
    pub(super) fn check(&self) -> Result<(), Fault> {
        for need in &self.destination.needs {
            let fits = self
                .references
                .get(&need.name)
                .is_some_and(|id| need.form.regex.is_match(id));
            if !fits {
                return Err(Fault::Absent(need.name.clone()));
            }
        }
        Ok(())
    }

    /// A text with its values, as they are: its place has to write them.
    ///
    /// # Errors
    /// When a reference is absent.
    pub(super) fn text(&self, text: &Text) -> Result<String, Fault> {
        text.0
            .iter()
            .map(|piece: &Piece| match piece {
                Piece::Literal(literal) => Ok(literal.clone()),
                Piece::Value(name) => self.value(name),
            })
            .collect()
    }

    fn value(&self, name: &Name) -> Result<String, Fault> {
        Ok(match name {
            Name::Notification(name) => self.words.text(name),
            Name::Marker => self.marker.clone(),
            Name::Since => self.since.clone(),
            Name::Page => self.page.to_string(),
            Name::Offset => self.seen.to_string(),
            Name::Reference(name) => {
                let id = self.references.get(name);
                id.cloned().ok_or_else(|| Fault::Absent(name.clone()))?
            }
            Name::With(name) => self.destination.with.get(name).cloned().unwrap_or_default(),
            Name::Secret => self.secret.to_owned(),
        })
    }
}

fn is_hash(id: &str) -> bool {
    id.len() == HASH_LETTERS && id.chars().all(|c| c.is_ascii_hexdigit())
}
