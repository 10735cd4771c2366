//! The port `PeopleMessages`: what people send to decide, as the broker delivers it, with the proof of its channel.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::ports::{BrokerUnavailable, Delivery};
use tarsy_core::approvals::PeopleSubject;

/// Delivers the messages of people. Each is redelivered until it is acknowledged.
pub trait PeopleMessages: Send + 'static {
    type Delivery: Delivery;

    /// The next message. After an error the caller asks again. Cancel safe.
    fn next(
        &mut self,
    ) -> impl Future<Output = Result<PeopleMessage<Self::Delivery>, BrokerUnavailable>> + Send;
}

/// A message of a person.
#[derive(Clone, Debug)]
pub struct PeopleMessage<D> {
    /// Its subject as text, for logs.
    pub subject: String,
    /// The parsed subject; `None` for one on which no person sends.
    pub address: Option<PeopleSubject>,
    /// The id of the vote (`Nats-Msg-Id`): the same for each delivery, and for a repeated click.
    pub id: Option<Uuid>,
    pub proof: Proof,
    pub body: Vec<u8>,
    /// The time when the stream stored it, by the stream's clock.
    pub stored_at: DateTime<Utc>,
    pub delivery: D,
}

/// The proof that the process of a channel has made a message, beyond the permissions of the broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// No key is configured for the channel.
    NotNeeded,
    Valid,
    /// The signature is missing or wrong.
    Invalid,
    /// The key of the channel cannot be read; holds the reason.
    Unreadable(String),
}

/// Names the groups of a person at a channel that the message does not name, the user groups of Slack, and answers
/// them there.
pub trait ChannelGroups: Send + Sync + 'static {
    /// The groups among `wanted` to which the account belongs, by the names of the configuration.
    fn groups_of(&self, account: &str, wanted: &[String]) -> impl Future<Output = Groups> + Send;

    /// Answers a person at an address that their message names. An answer that gets lost is not repeated.
    fn answer(&self, _address: &str, _text: &str) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// The answer about the groups of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Groups {
    Known(Vec<String>),
    /// The channel cannot be asked now; the message is tried again.
    Unavailable,
    /// The channel is not asked by this process.
    NotAsked,
}

/// Asks no channel: a right that only a group of a channel would give is refused.
#[derive(Clone, Copy, Debug)]
pub struct NoChannelGroups;

impl ChannelGroups for NoChannelGroups {
    async fn groups_of(&self, _account: &str, _wanted: &[String]) -> Groups {
        Groups::NotAsked
    }
}
