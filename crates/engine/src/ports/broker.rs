//! The ports of the broker: the timeline, the messages of the queue, cancel requests and the status of workers.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::dead_letter::DeadLetter;
use super::intake::Received;
use super::settlement::EventIdentity;
use super::sweep::IdleAlert;
use tarsy_core::ids::{SessionId, WorkerId};
use tarsy_core::timeline::{Delta, TimelineEvent};

/// The broker cannot be reached, or does not answer in time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("broker is unavailable: {0}")]
pub struct BrokerUnavailable(pub String);

/// Publishes timeline events and deltas of sessions, and dead letters.
pub trait Feed: Send + Sync + 'static {
    /// Notifies the publisher that the table may have unpublished events of the session. Never waits.
    fn notify(&self, session: SessionId);

    /// Like [`Feed::notify`], if the publisher has not reached the event with this number.
    fn notify_up_to(&self, session: SessionId, last_seq: u32);

    /// Notifies the publisher that this process has committed events of the session, which it gets from the
    /// [`Tail`](super::Tail). Never waits.
    fn committed(&self, session: SessionId);

    /// Waits until the session's publisher has this event on the stream, after all events before it, and ends the
    /// publisher. `false` when that is not known: then store and stream have to be compared.
    fn has_published(
        &self,
        session: SessionId,
        last: &EventIdentity,
    ) -> impl Future<Output = bool> + Send;

    /// Emits a piece of an answer to watchers. Never waits, may drop the piece.
    fn delta(&self, delta: Delta);

    /// Whether the stream has no event of the session. `false` when the stream cannot be read.
    fn is_new(&self, session: SessionId) -> impl Future<Output = bool> + Send;

    /// Compares the session's events on the stream with those of the store. `None`: the store has all of them.
    fn divergence(
        &self,
        session: SessionId,
    ) -> impl Future<Output = Result<Option<Divergence>, BrokerUnavailable>> + Send;

    /// Waits until every event up to `last_seq` is on the stream, then ends the session's publisher.
    fn drain(
        &self,
        session: SessionId,
        last_seq: u32,
    ) -> impl Future<Output = Result<(), BrokerUnavailable>> + Send;

    /// Whether the timeline stream takes events: it is there, has a leader, and has refused none since the last one
    /// that it took. Bounded by a few seconds.
    fn accepting(&self) -> impl Future<Output = Result<(), BrokerUnavailable>> + Send;

    /// Publishes a dead letter. Idempotent: the stream stores it once.
    fn publish_dead_letter(
        &self,
        letter: DeadLetter,
    ) -> impl Future<Output = Result<(), BrokerUnavailable>> + Send;
}

/// Events that were published, and that the store has lost.
#[derive(Clone, Debug, PartialEq)]
pub struct Divergence {
    /// Number of the last event that both have; 0 for none.
    pub kept: u32,
    /// The stream's events after it, in order, without a gap.
    pub events: Vec<TimelineEvent>,
}

/// A claimed message of the stream of alerts. Its acknowledgement does not affect who owns the session.
pub trait Delivery: Send + Sync + 'static {
    /// Extends the ack deadline: a heartbeat.
    fn progress(&self) -> impl Future<Output = Result<(), BrokerUnavailable>> + Send;

    /// Acknowledges the message, and waits until the server has confirmed that.
    fn ack(&self) -> impl Future<Output = Result<(), BrokerUnavailable>> + Send;

    /// Returns the message to the queue, which redelivers it after `delay`.
    fn nak(&self, delay: Duration) -> impl Future<Output = Result<(), BrokerUnavailable>> + Send;

    /// Terminates the message: it is never redelivered. `reason` goes into the server's advisory.
    fn term(&self, reason: &str) -> impl Future<Output = Result<(), BrokerUnavailable>> + Send;
}

/// The stream of alerts, for the sweeper, and for a body with several alerts.
pub trait Queue: Send + Sync + 'static {
    /// Whether the stream still has the alert's message at `stream_sequence`.
    fn holds(
        &self,
        alert: SessionId,
        stream_sequence: u64,
    ) -> impl Future<Output = Result<bool, BrokerUnavailable>> + Send;

    /// Queues an alert again under its id; returns its new sequence once the stream has acknowledged it.
    fn requeue(
        &self,
        alert: &IdleAlert,
    ) -> impl Future<Output = Result<u64, BrokerUnavailable>> + Send;

    /// Publishes one alert of a body with several as a separate message, under an id that follows from the id of the
    /// received message. A repetition publishes the same alert, which is investigated once. Bounded by some seconds.
    fn publish_part(
        &self,
        received: &Received,
        part: u32,
    ) -> impl Future<Output = Result<(), BrokerUnavailable>> + Send;
}

/// An item of the subscription to cancel requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelNotice {
    /// A person has asked for this session to be cancelled.
    Requested(SessionId),
    /// Requests may have been missed: those of every running session have to be looked up.
    Missed,
}

/// Requests to cancel sessions. The broker stores the last one of each session and emits it to subscribers.
pub trait CancelRequests: Send + Sync + 'static {
    /// The next request for any session. The first notice is [`CancelNotice::Missed`], once the subscription exists.
    /// Cancel safe. Only one task may call it.
    fn next(&self) -> impl Future<Output = CancelNotice> + Send;

    /// Whether a request to cancel this session is stored.
    fn cancel_requested(
        &self,
        session: SessionId,
    ) -> impl Future<Output = Result<bool, BrokerUnavailable>> + Send;

    /// The name of the person who sent the last request for this session, as a login has it. `None` if the request has
    /// no name, or the broker does not answer: the name is only shown.
    fn requested_by(&self, session: SessionId) -> impl Future<Output = Option<String>> + Send;
}

/// Announces workers to watchers. Advisory: no claim depends on it.
pub trait Presence: Send + Sync + 'static {
    /// Emits the status. Never waits, may lose it.
    fn announce(&self, worker: &WorkerStatus);
}

/// A status has to fit into a message of the broker.
pub const MAX_LISTED_SESSIONS: usize = 1_000;

impl WorkerStatus {
    /// The number of sessions that it owns now.
    pub fn running(&self) -> usize {
        self.sessions
            .len()
            .max(usize::try_from(self.busy).unwrap_or(usize::MAX))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerStatus {
    /// The process.
    pub worker_id: WorkerId,
    /// Its name for people.
    pub name: String,
    /// The program's version.
    pub version: String,
    /// Investigations that it can own at once.
    pub slots: u32,
    /// The sessions that it owns now, at most [`MAX_LISTED_SESSIONS`] of them.
    pub sessions: Vec<SessionId>,
    /// The number of those that it owns now; 0 in the status of an older version, which lists all of them.
    #[serde(default)]
    pub busy: u32,
    /// `claiming`, `paused` (something it needs is unavailable) or `draining`.
    pub state: String,
    /// The unavailable services while it is paused: `nats`, `database`, `llm-service`, `providers`. An earlier version
    /// sends none.
    #[serde(default)]
    pub unavailable: Vec<String>,
    /// The time that it has been in this state, in milliseconds; 0 from an earlier version.
    #[serde(default)]
    pub state_ms: u64,
}
