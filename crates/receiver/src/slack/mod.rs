//! Requests of Slack: `POST /slack/actions`, the buttons of messages, and `POST /slack/events`, the mentions of the bot
//! in a thread.
//!
//! A request is proven by its signature over the raw body before a byte of it is parsed. What the person decided or
//! asks is passed to a [`SlackQueue`]; the answer is 200 only after the queue has stored it. This process knows neither
//! rights nor people: a worker judges, and answers the person.

mod signature;
mod actions;
mod markup;
mod events;
mod server;

use std::time::Duration;

use serde::Serialize;
use uuid::Uuid;

pub use self::server::serve;
use super::PublishError;
use super::proof::HmacKeys;
use tarsy_core::alert::refs::SlackThread;
use tarsy_core::approvals::{DecisionMessage, Topic};
use tarsy_core::ids::SessionId;
use tarsy_core::verdicts::VerdictMessage;
use tarsy_http::listener::Limits;

/// The rules for requests of Slack.
#[derive(Debug)]
pub struct SlackSettings {
    /// The app whose buttons and mentions count.
    pub app: String,
    /// The workspace whose people decide and ask.
    pub team: String,
    /// The signing secrets; one has to match.
    pub keys: HmacKeys,
    /// The beginnings of the addresses to which a worker may answer; any other address is left out.
    pub answers: Vec<String>,
    /// The time limit for the head of a request; also the longest time that a connection may be idle.
    pub header_timeout: Duration,
    pub limits: Limits,
}

/// A click of a person, as it is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlackClick {
    /// The same for each repetition of the same click.
    pub id: Uuid,
    pub topic: Topic,
    pub message: SlackMessage,
}

/// The meaning of a click.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum SlackMessage {
    /// A person decides about a call.
    Decision(DecisionMessage),
    /// A person judges an analysis.
    Verdict(VerdictMessage),
}

/// A question that a person asks in a thread, as it is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlackQuestion {
    /// The same for each repetition of the same event: the id of the question's session.
    pub id: SessionId,
    pub thread: SlackThread,
    /// The member id.
    pub user: String,
    /// Plain text, without the mention of the bot. One that is longer than permitted is cut behind the limit.
    pub text: String,
}

/// Stores what people decide and ask, for workers.
pub trait SlackQueue: Send + Sync + 'static {
    /// Returns when the click is stored.
    ///
    /// # Errors
    /// When it is not stored, or it is unknown whether it is.
    fn publish(&self, click: SlackClick) -> impl Future<Output = Result<(), PublishError>> + Send;

    /// Returns when the question is stored.
    ///
    /// # Errors
    /// As [`Self::publish`].
    fn ask(&self, question: SlackQuestion)
    -> impl Future<Output = Result<(), PublishError>> + Send;
}

#[cfg(test)]
mod tests;
