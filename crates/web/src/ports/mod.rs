//! The ports of the web server: traits for all data that it reads and the messages that it sends. `roles/web/`
//! implements them with the store and the broker; tests use fakes.
//!
//! Everything that these ports return is masked already. None of it is HTML: a text is escaped where it is rendered.
//! Every call ends within seconds.

mod people;

use std::time::Duration;

use serde::Serialize;

use tarsy_core::alert::Severity;
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::{Delta, TimelineEvent};
use tarsy_engine::ports::WorkerStatus;
use tarsy_reports::calls::{CallNumber, NumberedCall, RebuiltCall};
use tarsy_reports::system::SystemReport;
use tarsy_reports::{
    AlertReport, Check, DeadAlert, EventSearch, Excerpt, ExcerptPage, Facets, FoundEvents, IdMatch,
    SessionEntry, SessionPage, StatusCounts,
};

pub use people::{
    Cast, Decision, Freeze, FreezeChange, HOURS, JUDGEMENTS, Judgement, MAX_COMMENT, MAX_COUNTED,
    MAX_JUDGED, MAX_REASON, MayDecide, NoRecord, Notice, People, Recorded,
};

/// A service that does not answer. The text names it, has the reason in one line, and no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(pub String);

/// Reads from the database. No method writes: the role of the database may only SELECT.
pub trait Reader: Send + Sync + 'static {
    /// A page of sessions, newest first, at most `page.filter.limit` of them.
    fn sessions(
        &self,
        page: SessionPage,
    ) -> impl Future<Output = Result<Vec<SessionEntry>, Unavailable>> + Send;

    /// The number of sessions for each status, among those that `page` without its status, limit and `before` selects.
    fn counts(
        &self,
        page: SessionPage,
    ) -> impl Future<Output = Result<StatusCounts, Unavailable>> + Send;

    /// The words of all sessions that the list is filtered by.
    fn facets(&self) -> impl Future<Output = Result<Facets, Unavailable>> + Send;

    /// The alert or session whose id begins or ends with `part`, of six characters or more.
    fn find(&self, part: &str) -> impl Future<Output = Result<IdMatch, Unavailable>> + Send;

    /// An alert with its session, joined alerts and questions; `None` if no worker has seen it.
    fn report(
        &self,
        id: SessionId,
    ) -> impl Future<Output = Result<Option<AlertReport>, Unavailable>> + Send;

    /// The events after number `after` (0: from the first), in order, at most `limit`. Contents are whole.
    fn events(
        &self,
        id: SessionId,
        after: u32,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<TimelineEvent>, Unavailable>> + Send;

    /// The events of a page in order, with the beginnings of their contents.
    fn excerpts(
        &self,
        page: ExcerptPage,
    ) -> impl Future<Output = Result<Vec<Excerpt>, Unavailable>> + Send;

    /// The events of a session that contain a text, in their contents or in the stored results of their calls.
    fn search_events(
        &self,
        search: EventSearch,
    ) -> impl Future<Output = Result<FoundEvents, Unavailable>> + Send;

    /// The model calls of a session in order; `None` if there is no such session.
    fn calls(
        &self,
        id: SessionId,
    ) -> impl Future<Output = Result<Option<Vec<NumberedCall>>, Unavailable>> + Send;

    /// A model call with its request; `None` if the session has no such call.
    fn call(
        &self,
        id: SessionId,
        number: CallNumber,
    ) -> impl Future<Output = Result<Option<RebuiltCall>, Unavailable>> + Send;

    /// The newest alerts that were given up, newest first; at most `limit`. One that was queued again or dropped since
    /// stays listed until it is pruned.
    fn dead_letters(
        &self,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<DeadAlert>, Unavailable>> + Send;
}

/// Follows timelines on the broker.
pub trait Timelines: Send + Sync + 'static {
    type Session: Updates;
    type All: Updates;

    /// Every event after number `after`, each once and in order, to the end of the session; and the deltas between
    /// them. A follower costs a consumer of the broker: `Hub` shares one among the readers of a
    /// session.
    ///
    /// # Errors
    /// When there is no connection yet.
    fn follow(&self, id: SessionId, after: u32) -> Result<Self::Session, Unavailable>;

    /// Every event of every session from now on, without deltas.
    fn follow_all(&self) -> impl Future<Output = Result<Self::All, Unavailable>> + Send;

    /// Whether the broker is connected now. While it is not, pages say "not live".
    fn is_live(&self) -> bool;
}

/// A running follower. Dropping it ends it.
pub trait Updates: Send + 'static {
    /// The next update; `None` after the end event. Waits without a limit. Cancel safe.
    fn next(&mut self) -> impl Future<Output = Option<Update>> + Send;
}

/// An update of a timeline.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    Event(TimelineEvent),
    /// A piece of an answer that is not part of an event yet. A lower offset than the shown length truncates the shown
    /// text to it; the event of its iteration replaces all of it.
    Delta(Delta),
}

/// The queue: waiting alerts and the status of workers.
pub trait Queue: Send + Sync + 'static {
    /// The queue of each priority, the highest first.
    fn lanes(&self) -> impl Future<Output = Result<Vec<Lane>, Unavailable>> + Send;

    /// The workers that sent a status within the last 15 s, by name.
    fn workers(&self) -> Vec<WorkerStatus>;

    /// The last report of each worker about itself, by name, of those that sent one within the last hour.
    fn systems(&self) -> Vec<WorkerSystem>;

    /// The checks of `tarsy doctor` that a reader may do, some seconds old. A service that does not answer fails its
    /// check.
    fn checks(&self) -> impl Future<Output = Vec<Check>> + Send;
}

/// A report of a worker about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorkerSystem {
    #[serde(flatten)]
    pub report: SystemReport,
    /// The time since it arrived, in milliseconds.
    pub age_ms: u64,
}

/// The queue of one priority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lane {
    /// `critical`, `high`, `normal` or `low`.
    pub priority: &'static str,
    /// Alerts that no worker has claimed.
    pub waiting: u64,
    /// Alerts that are claimed and not settled.
    pub in_work: u64,
    /// The age of the oldest of all these in seconds; `None` if no alert waits, or if this server may not read it.
    #[serde(rename = "oldest_s", serialize_with = "seconds")]
    pub oldest: Option<Duration>,
}

fn seconds<S: serde::Serializer>(age: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    age.map(|age| age.as_secs()).serialize(serializer)
}

/// Sends what people request to the workers, over the broker as the commands do.
pub trait Requests: Send + Sync + 'static {
    /// Queues a question about an investigation that is over.
    fn ask(&self, question: Question) -> impl Future<Output = Result<Published, Refusal>> + Send;

    /// Requests the end of a session; it comes as an event.
    fn cancel(&self, cancel: Cancel) -> impl Future<Output = Result<(), Refusal>> + Send;

    /// Queues an alert. The same submission with the same `request` is queued once.
    fn submit(
        &self,
        submission: Submission,
    ) -> impl Future<Output = Result<Submitted, Refusal>> + Send;

    /// Whether the alert of a report can be investigated again.
    ///
    /// # Errors
    /// A [`Refusal::State`].
    fn may_rerun(&self, report: &AlertReport) -> Result<(), Refusal>;

    /// Queues the alert of an investigation that is over once more. The same rerun with the same `request` is queued
    /// once.
    fn rerun(&self, rerun: Rerun) -> impl Future<Output = Result<Published, Refusal>> + Send;

    /// The chains that an alert can name; none if this server does not know them.
    fn chains(&self) -> &[String];

    /// The largest alert, in bytes.
    fn max_alert_bytes(&self) -> usize;
}

/// A question about an investigation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub about: SessionId,
    pub text: String,
    /// The user who asks, as the timeline shows it.
    pub by: String,
}

/// A request to end a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancel {
    pub session: SessionId,
    /// The user who asks, as the timeline shows it.
    pub by: String,
}

/// An alert that a person submits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// Chosen before it is sent, so that it can be sent again.
    pub request: SessionId,
    /// Any text or JSON.
    pub alert: String,
    /// `None`: the severity in the alert.
    pub priority: Option<Severity>,
    /// `None`: the chain of its type.
    pub chain: Option<String>,
    pub cooldown: Cooldown,
    /// The user who submits it, as the timeline shows it.
    pub by: String,
}

/// Whether an alert that was investigated a short time ago is investigated again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cooldown {
    /// It joins the former investigation.
    #[default]
    Counts,
    Ignored,
}

/// The alerts of one submission: a body may have several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    pub first: Published,
    pub others: Vec<Published>,
}

/// An alert that a person has investigated again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rerun {
    /// Chosen before it is sent, so that it can be sent again.
    pub request: SessionId,
    pub of: SessionId,
    /// `None`: the chain that the alert named.
    pub chain: Option<String>,
    /// The user who reruns it, as the timeline shows it.
    pub by: String,
}

/// The place of an alert or a question in the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Published {
    /// The session that it opens.
    pub session_id: SessionId,
    pub subject: String,
    pub stream_sequence: u64,
}

/// The reason why a request was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No worker has seen the session.
    #[error("{0}")]
    Unknown(String),
    /// The session is in a state in which this cannot be requested.
    #[error("{0}")]
    State(String),
    /// The text or a setting is not accepted.
    #[error("{0}")]
    Invalid(String),
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// All ports together.
pub trait Backend: Reader + Timelines + Queue + Requests + People {}

impl<T: Reader + Timelines + Queue + Requests + People> Backend for T {}
