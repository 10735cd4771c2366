//! Notifications: the routes that are notified of the start or end of an investigation, and the texts that they get.
//!
//! `route` decides, `summary` says what there is to report, `template` puts it into words. `slack`, `teams` and
//! `webhook` write the body of one request each; a text from outside has no meaning there but its own.

pub mod route;
mod readable;
pub mod summary;
pub mod template;
pub mod slack;
pub mod teams;
pub mod webhook;

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
}

crate::words!(pub Moment, pub ALL);

impl Moment {
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
}

impl NotificationKey {
    /// The idempotency key: the same for every attempt, also after a restore of the database.
    pub fn id(&self) -> Uuid {
        Uuid::new_v5(
            &self.session.0,
            format!("notification/{}/{}", self.moment.as_str(), self.route).as_bytes(),
        )
    }

    /// The last word of a note, by which it is found again at its destination.
    pub fn marker(&self) -> String {
        format!("tarsy-{}", self.id().simple())
    }
}

impl fmt::Display for NotificationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} to {}",
            self.moment.as_str(),
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
}

/// The remark of a notification that may be a repetition.
pub const MAY_REPEAT: &str =
    "Sent again: the answer to an earlier attempt is not known, so this may be a repetition.";

#[cfg(test)]
mod tests;
