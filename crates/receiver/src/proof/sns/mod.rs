//! Messages of Amazon SNS: the signature with a certificate of SNS, and the confirmation of a subscription.
//!
//! Every address is built from a configured topic. An address in a message is compared and never requested, so a forged
//! message makes the receiver connect to nothing but SNS itself.

mod topic;
mod message;
mod certificates;
mod confirmation;

use std::sync::Arc;

use chrono::TimeDelta;
use reqwest::Client;

pub use self::certificates::Certificates;
pub(crate) use self::confirmation::unsigned_control;
use self::message::{Message, MessageType};
pub use self::topic::Topic;
use super::{Proven, Signed};
use crate::response::Rejection;
use tarsy_core::ids::SessionId;

/// SNS repeats a message for an hour at most, with the time of the first try.
const MAX_AGE: TimeDelta = TimeDelta::hours(1);
/// The clock of SNS may be this far ahead.
const MAX_AHEAD: TimeDelta = TimeDelta::minutes(5);

/// The handling of a signed confirmation of a listed topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirm {
    /// Log the command with which a person confirms the subscription.
    ByHand,
    /// Confirm it.
    AtOnce,
}

/// The topics whose messages are accepted.
#[derive(Debug)]
pub struct Sns {
    pub topics: Vec<Topic>,
    pub confirm: Confirm,
    pub certificates: Arc<Certificates>,
}

/// The HTTP client of requests to SNS.
///
/// # Errors
/// When the authorities of the system cannot be read.
pub fn client() -> reqwest::Result<Client> {
    certificates::client()
}

impl Sns {
    pub(super) async fn check(&self, signed: Signed<'_>) -> Result<Proven, Rejection> {
        let message = Message::parse(signed.body).map_err(Rejection::Unproven)?;
        let listed = self
            .topics
            .iter()
            .find(|topic| topic.arn() == message.topic_arn);
        let Some(topic) = listed else {
            return Err(Rejection::Unproven(
                "the topic of this message is not one of auth.sns.topics".to_owned(),
            ));
        };
        let age = signed.now.signed_duration_since(message.timestamp);
        if age > MAX_AGE || age < -MAX_AHEAD {
            return Err(Rejection::Unproven(
                "the message is older than an hour, or its time is in the future".to_owned(),
            ));
        }
        self.certificates.verify(topic, &message, signed).await?;
        match message.kind {
            MessageType::Notification => {
                let parts = [
                    signed.source.as_bytes(),
                    topic.arn().as_bytes(),
                    message.message_id.as_bytes(),
                ];
                let sent_at_ms =
                    u64::try_from(message.timestamp.timestamp_millis()).unwrap_or_default();
                Ok(Proven::Alert(Some(SessionId::of_message(
                    &parts, sent_at_ms,
                ))))
            }
            MessageType::SubscriptionConfirmation => {
                self.confirm(topic, &message).await.map(Proven::Control)
            }
            MessageType::UnsubscribeConfirmation => {
                tracing::warn!(
                    topic = topic.arn(),
                    "sns subscription ended: SNS sends no further message of this topic"
                );
                Ok(Proven::Control("SNS has ended the subscription".to_owned()))
            }
        }
    }

    async fn confirm(&self, topic: &Topic, message: &Message) -> Result<String, Rejection> {
        let token = confirmation::token(message).map_err(Rejection::Unproven)?;
        match self.confirm {
            Confirm::ByHand => Ok(confirmation::log_command(topic, token)),
            Confirm::AtOnce => {
                confirmation::confirm(self.certificates.client(), topic, token).await
            }
        }
    }
}

#[cfg(test)]
mod tests;
