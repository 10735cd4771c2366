//! The small print of a pull request: an inbox of its own and what the server's status messages mean.

use async_nats::{Message, Subscriber};
use futures_util::StreamExt;

use crate::bus::connection::Nats;
use crate::bus::error::Error;

/// Where pull requests are answered. Request number `n` is answered on `<prefix>.<n>`.
#[derive(Debug)]
pub(crate) struct Inbox {
    prefix: String,
    subscriber: Subscriber,
}

/// One answer to a pull request.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A message of the stream.
    Message(Box<Message>),
    /// The server still knows this request.
    Heartbeat(usize),
    /// This request is over; there may be others.
    Over(usize),
    /// The consumer is gone, or the server says something that ends all requests.
    Lost(String),
}

impl Inbox {
    pub(crate) async fn open(nats: &Nats) -> Result<Self, Error> {
        let prefix = nats.client().new_inbox();
        let subscriber = nats.client().subscribe(format!("{prefix}.*")).await;
        Ok(Self { subscriber: subscriber.map_err(|error| Error::Unavailable(error.to_string()))?, prefix })
    }

    /// The reply subject of request `number`.
    pub(crate) fn reply_to(&self, number: usize) -> String {
        format!("{}.{number}", self.prefix)
    }

    /// The next answer. Cancel safe.
    pub(crate) async fn next(&mut self) -> Answer {
        match self.subscriber.next().await {
            Some(message) => self.classify(message),
            None => Answer::Lost("the connection was closed".to_owned()),
        }
    }

    fn classify(&self, message: Message) -> Answer {
        let Some(status) = message.status else {
            return Answer::Message(Box::new(message));
        };
        let description = message.description.clone().unwrap_or_default();
        let number = || message.subject.rsplit('.').next().and_then(|number| number.parse().ok()).unwrap_or(0);
        match status.as_u16() {
            100 => Answer::Heartbeat(number()),
            404 | 408 => Answer::Over(number()),
            409 if description.contains("Batch Completed") || description.contains("MaxAckPending") => {
                Answer::Over(number())
            }
            code => Answer::Lost(format!("{code} {description}")),
        }
    }
}
