//! The replies to pull requests: their inbox, and the meaning of the server's status messages.

use async_nats::{Message, Subscriber};
use futures_util::StreamExt;

use crate::connection::Nats;
use crate::error::Error;

/// The inbox for the replies to pull requests. Request number `n` is answered on `<prefix>.<n>`.
#[derive(Debug)]
pub(crate) struct PullInbox {
    prefix: String,
    subscriber: Subscriber,
}

/// A reply to a pull request.
#[derive(Debug)]
pub(crate) enum PullReply {
    Message(Box<Message>),
    /// The request with this number still waits at the server.
    Heartbeat(usize),
    /// The request with this number has ended.
    Ended(usize),
    /// All requests are lost: the consumer is gone, or the server reports another error.
    Lost(String),
}

impl PullInbox {
    pub(crate) async fn open(nats: &Nats) -> Result<Self, Error> {
        let prefix = nats.client.new_inbox();
        Ok(Self {
            subscriber: nats.client.subscribe(format!("{prefix}.*")).await?,
            prefix,
        })
    }

    /// The reply subject of request `number`.
    pub(crate) fn reply_to(&self, number: usize) -> String {
        format!("{}.{number}", self.prefix)
    }

    /// The next reply. Cancel safe.
    pub(crate) async fn next(&mut self) -> PullReply {
        match self.subscriber.next().await {
            Some(message) => self.classify(message),
            None => PullReply::Lost("the connection was closed".to_owned()),
        }
    }

    fn classify(&self, message: Message) -> PullReply {
        let Some(status) = message.status else {
            return PullReply::Message(Box::new(message));
        };
        let description = message.description.clone().unwrap_or_default();
        let number = || {
            message
                .subject
                .rsplit('.')
                .next()
                .and_then(|number| number.parse().ok())
                .unwrap_or(0)
        };
        match status.as_u16() {
            100 => PullReply::Heartbeat(number()),
            404 | 408 => PullReply::Ended(number()),
            409 if description.contains("Batch Completed")
                || description.contains("MaxAckPending") =>
            {
                PullReply::Ended(number())
            }
            code => PullReply::Lost(format!("{code} {description}")),
        }
    }
}
