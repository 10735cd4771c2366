//! Interprets the end of a dialogue with a mail server.
//!
//! | end | the message has arrived | next |
//! |---|---|---|
//! | 4xx, or none before the content was sent | no | again |
//! | 5xx to the greeting, to TLS or to the password; 530, 534, 535, 538 | no | again: operators can mend it |
//! | 5xx to the sender, the recipients or the content | no | given up |
//! | none after the content was sent | perhaps | again, with the remark that it may be a repetition |

use std::error::Error as _;
use std::fmt;

use lettre::transport::smtp;

use crate::answer::{quoted, unavailable};
use tarsy_engine::ports::{Arrival, ProviderAnswer};

/// Answers about the login or the protection of the connection, not about the message.
const MENDABLE: [u16; 4] = [530, 534, 535, 538];

/// The part of a dialogue that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The connection, the greeting, and TLS.
    Connection,
    Login,
    Sender,
    Recipient,
    /// The question whether the content may follow.
    Data,
    /// The content, to its end.
    Content,
}

impl Part {
    fn words(self) -> &'static str {
        match self {
            Self::Connection => "to the connection",
            Self::Login => "to the login",
            Self::Sender => "to the sender",
            Self::Recipient => "to a recipient",
            Self::Data => "to DATA",
            Self::Content => "to the message",
        }
    }
}

/// A dialogue that failed, with its reason.
#[derive(Debug)]
pub(super) struct Failure {
    part: Part,
    /// The code of the server's answer; `None` without one.
    code: Option<u16>,
    reason: String,
}

impl Failure {
    /// A failure without an answer of the server.
    pub(super) fn of_ours(part: Part, reason: impl Into<String>) -> Self {
        Self {
            part,
            code: None,
            reason: reason.into(),
        }
    }

    pub(super) fn new(part: Part, error: &smtp::Error) -> Self {
        let code = error.status().map(u16::from);
        let reason = match code {
            Some(code) => {
                let answer = error.source().map(ToString::to_string).unwrap_or_default();
                format!("SMTP {code} {}{}", part.words(), quoted(&answer))
            }
            // What lettre itself refuses, such as a login for which the server has no mechanism.
            None if error.is_client() => cause(error),
            None => format!("no answer {}{}", part.words(), quoted(&cause(error))),
        };
        Self { part, code, reason }
    }

    /// Whether no later attempt with the same message can succeed.
    pub(super) fn is_final(&self) -> bool {
        let is_about_message = match self.part {
            Part::Connection | Part::Login => false,
            Part::Sender | Part::Recipient | Part::Data | Part::Content => true,
        };
        is_about_message
            && self
                .code
                .is_some_and(|code| code >= 500 && !MENDABLE.contains(&code))
    }

    pub(super) fn verdict(self) -> ProviderAnswer {
        if self.is_final() {
            return ProviderAnswer::Rejected {
                reason: self.reason,
            };
        }
        let arrival = match (self.part, self.code) {
            (Part::Content, None) => Arrival::Unknown,
            (
                Part::Connection
                | Part::Login
                | Part::Sender
                | Part::Recipient
                | Part::Data
                | Part::Content,
                _,
            ) => Arrival::Refused,
        };
        unavailable(self.reason, arrival)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// The innermost cause.
fn cause(error: &smtp::Error) -> String {
    let first: &dyn std::error::Error = error;
    let sources = std::iter::successors(Some(first), |error| (*error).source());
    sources.last().map(ToString::to_string).unwrap_or_default()
}
