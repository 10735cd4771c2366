//! The port `Intake`: parses the bytes of a message into an alert, and makes its plan.

use std::fmt::Debug;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::dead_letter::Refusal;
use super::lease::StoreError;
use tarsy_config::AlertRoute;
use tarsy_core::alert::Alert;
use tarsy_core::follow_up::Thread;
use tarsy_core::ids::SessionId;
use tarsy_core::plan::Plan;
use tarsy_core::readable::format;
use tarsy_core::timeline::EventDraft;

/// A message that a worker has claimed from the queue, with its body still undecoded.
#[derive(Debug)]
pub struct Job<D> {
    pub received: Received,
    /// The fault that the bus found in the message. Then `received.alert_id` is `derived_id`.
    pub fault: Option<Refusal>,
    /// The id that the message has without a header. Another body under a used id is stored under this one.
    pub derived_id: SessionId,
    pub delivery: Arc<D>,
}

/// One delivery of an alert as the store records it, before its body is decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The producer's id, or the one derived from the delivery.
    pub alert_id: SessionId,
    pub body_sha256: [u8; 32],
    /// The body as received; `None` when it is larger than what is read.
    pub body: Option<Vec<u8>>,
    /// Allow-listed headers.
    pub headers: Value,
    pub subject: String,
    /// The message's sequence in the stream of alerts.
    pub stream_sequence: u64,
    /// The time when the stream stored the message.
    pub queued_at: DateTime<Utc>,
}

impl Received {
    /// The value of an allow-listed header.
    pub fn header(&self, name: &str) -> Option<String> {
        let value = self.headers.get(name)?.as_str()?;
        Some(value.to_owned())
    }
}

/// Makes an alert and a plan of a received body.
pub trait Intake: Debug + Send + Sync + 'static {
    /// Decodes and masks the body.
    ///
    /// # Errors
    /// When the alert has to be given up, or something that decoding needs is unavailable.
    fn prepare(
        &self,
        received: &Received,
    ) -> impl Future<Output = Result<PreparedAlert, PrepareError>> + Send;

    /// Plans the investigation of an alert that joins no session and is covered by no cooldown.
    ///
    /// # Errors
    /// As [`Intake::prepare`].
    fn plan(
        &self,
        received: &Received,
        prepared: &PreparedAlert,
    ) -> impl Future<Output = Result<Planned, PrepareError>> + Send;
}

/// A decoded and masked alert whose disposition is undecided.
#[derive(Clone, Debug, PartialEq)]
pub struct PreparedAlert {
    pub alert: Alert,
    /// The other alerts of the same body, which have no separate messages yet.
    pub other_parts: Vec<u32>,
    /// The skill that takes the place of a runbook, which the alert does not name.
    pub runbook_skill: Option<String>,
    /// The route that matched it.
    pub route: Option<AlertRoute>,
    /// The producer asks for a new investigation: the cooldown does not cover this alert.
    pub force: bool,
    /// The limit of its route; `None` if it has none, or if the producer asks for a new investigation.
    pub limit: Option<RouteLimit>,
    /// The session that this one repeats.
    pub retry_of: Option<SessionId>,
    /// The investigation that this alert asks a question about.
    pub thread: Option<Box<Thread>>,
    /// The route of notifications in whose thread the question was asked, and which sends the answer there.
    pub answer_route: Option<String>,
}

/// The hourly limit of investigations that the route of an alert opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteLimit {
    /// The name of the route.
    pub route: String,
    /// At least 1.
    pub max_per_hour: u32,
    /// The chain that would investigate the alert.
    pub chain: String,
}

impl RouteLimit {
    /// The reason why an alert above the limit is not investigated, for people.
    pub fn why(&self) -> String {
        format!(
            "route {} opens at most {} an hour",
            self.route,
            format::count(self.max_per_hour, "investigation")
        )
    }
}

/// The plan of an alert's session.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    pub plan: Plan,
    /// The session's first event.
    pub started: EventDraft,
    /// The unavailable servers without which the session may not begin.
    pub awaited_servers: Vec<String>,
}

/// The reason why an alert was not prepared or planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrepareError {
    /// The alert has to be given up.
    Refused(Refusal),
    /// The store is unavailable: the message is redelivered, and the attempt is refunded.
    Unavailable(StoreError),
}

impl From<Refusal> for PrepareError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
