//! Messages of people: decisions, freezes and verdicts. A channel signs and publishes them; workers receive them with
//! the proof of their channel.

mod signature;
mod publish;
mod pending;
mod receive;

pub use publish::{NewPeopleMessage, PeoplePublished};
pub use receive::JetStreamPeople;
pub use signature::{ChannelKeys, SIGNATURE};
