//! The broker: the way out of a session, and the message that brought it.

use std::future::Future;
use std::time::Duration;

use super::sessions::DeadLetter;
use crate::investigation::ids::SessionId;
use crate::investigation::timeline::Delta;

/// The broker cannot be reached, or does not answer in time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("broker is away: {0}")]
pub struct BrokerAway(pub String);

/// The way out of a running session.
pub trait Feed: Send + Sync + 'static {
    /// There may be new rows: publish them. Never waits.
    fn poke(&self, session: SessionId);

    /// Shows a piece of an answer. Never waits, may drop.
    fn delta(&self, delta: Delta);

    /// Returns when every event up to `last_seq` is on the stream; then the session's publisher ends.
    fn drain(&self, session: SessionId, last_seq: u32) -> impl Future<Output = Result<(), BrokerAway>> + Send;

    /// Stores a dead letter once, however often it is called.
    fn bury(&self, letter: DeadLetter) -> impl Future<Output = Result<(), BrokerAway>> + Send;
}

/// A claimed message of the stream of alerts. An answer says nothing about ownership.
pub trait Delivery: Send + Sync + 'static {
    /// Still at it.
    fn progress(&self) -> impl Future<Output = Result<(), BrokerAway>> + Send;

    /// Done; returns when the server has confirmed it.
    fn ack(&self) -> impl Future<Output = Result<(), BrokerAway>> + Send;

    /// Give it to somebody else after `delay`.
    fn nak(&self, delay: Duration) -> impl Future<Output = Result<(), BrokerAway>> + Send;

    /// Never again; `reason` is for the server's advisory.
    fn term(&self, reason: &str) -> impl Future<Output = Result<(), BrokerAway>> + Send;
}
