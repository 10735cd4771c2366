//! Notifications: the routes that are notified of the start or end of an investigation, and the texts that they get.
//!
//! `route` decides, `summary` says what there is to report, `template` puts it into words. `slack`, `teams` and
//! `webhook` write the body of one request each, `email` the words of a message; a text from outside has no meaning
//! there but its own.

pub mod route;
mod readable;
pub mod request;
mod slack_request;
mod slack_verdict;
pub mod summary;
pub mod template;
pub mod slack;
pub mod teams;
pub mod webhook;
pub mod email;

use std::fmt;
use strum::{IntoStaticStr, VariantArray};

use uuid::Uuid;

pub use self::readable::with_citations_in_words;
use self::summary::Summary;
use super::ids::SessionId;

/// The moment of an investigation that a notification reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Moment {
    /// The investigation has begun.
    Started,
    /// The investigation has ended, or its alert was given up.
    Ended,
    /// A cooldown covers the alert: an earlier investigation is its answer.
    Covered,
    /// A call of the investigation waits for a person.
    Approval,
    /// A call that waited for a person was decided about, or its request has ended. A route with [`Self::Approval`]
    /// that can change its messages gets it, too.
    Decided,
}

crate::words!(pub Moment, pub ALL);

impl Moment {
    /// The moments that a route may list.
    pub const OF_ROUTES: [Self; 4] = [Self::Started, Self::Ended, Self::Covered, Self::Approval];

    /// The moment of a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|moment| moment.as_str() == word)
    }
}

/// Identifies a notification: there is one for each session, route and moment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NotificationKey {
    /// The session, or the alert that was given up or covered.
    pub session: SessionId,
    /// The name of the route in the configuration.
    pub route: String,
    pub moment: Moment,
    /// The request of a moment about a call that waits for a person: the number of its event.
    pub request: Option<u32>,
}

impl NotificationKey {
    /// The idempotency key: the same for every attempt, also after a restore of the database.
    pub fn id(&self) -> Uuid {
        Uuid::new_v5(
            &self.session.0,
            format!("notification/{}/{}", self.word(), self.route).as_bytes(),
        )
    }

    /// The stored word of the moment: `ended`, `approval-42`.
    pub fn word(&self) -> String {
        let moment = self.moment.as_str();
        match self.request {
            Some(request) => format!("{moment}-{request}"),
            None => moment.to_owned(),
        }
    }

    /// The moment and the request of a stored word.
    pub fn parse_word(word: &str) -> Option<ParsedWord> {
        let request = word.split_once('-');
        let moment = Moment::parse(request.map_or(word, |(moment, _)| moment))?;
        let request = match request {
            Some((_, number)) => Some(number.parse().ok()?),
            None => None,
        };
        Some(ParsedWord { moment, request })
    }

    /// The last word of a note, by which it is found again at its destination.
    pub fn marker(&self) -> String {
        format!("tarsy-{}", self.id().simple())
    }
}

/// A parsed word of a stored notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedWord {
    pub moment: Moment,
    pub request: Option<u32>,
}

impl fmt::Display for NotificationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} to {}",
            self.word(),
            self.session.short(),
            self.route
        )
    }
}

/// A notification as a route sends it.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    pub key: NotificationKey,
    /// The session that it is about: for a covered alert the earlier one.
    pub about: SessionId,
    pub summary: Summary,
    /// The page of the session that it is about.
    pub url: Option<String>,
    /// The words of the route's template; `None` for the usual form.
    pub template: Option<template::Template>,
    /// An earlier attempt may have reached the provider, although its answer is not known.
    pub may_repeat: bool,
    /// Whether it is sent into the thread that it answers in, or nowhere.
    pub stays_in_thread: bool,
}

/// The remark of a notification that may be a repetition.
pub const MAY_REPEAT: &str =
    "Sent again: the answer to an earlier attempt is not known, so this may be a repetition.";

#[cfg(test)]
mod tests;
