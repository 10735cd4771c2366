//! The port `Sessions`: alerts, sessions, and the leases that decide which worker may write.

use std::time::Duration;

use uuid::Uuid;

use super::broker::Divergence;
use super::dead_letter::{DeadReason, Refusal};
use super::intake::{Received, RouteLimit};
use super::journal::StageBegun;
use super::lease::{Lease, StoreError};
use super::pruned::Pruned;
use super::settlement::{SettlementStatus, StoredMessage};
use super::sweep::{Sweep, Swept};
use tarsy_config::Retention;
use tarsy_core::alert::Alert;
use tarsy_core::alert::policy::OnAcknowledged;
use tarsy_core::alert_update::Change;
use tarsy_core::ids::{SessionId, WorkerId};
use tarsy_core::plan::Plan;
use tarsy_core::timeline::EventDraft;
use tarsy_core::trace_context::TraceContext;

/// The disposition of an alert: its session, or the end without one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Undecided: the alert has to be decoded, then opens a session, joins one, ends, or is given up.
    Undecided {
        /// Attempts to prepare the alert, this one included, without refunded ones.
        attempts: u32,
    },
    /// The alert opened the session that has its id.
    Opened,
    /// The alert joined this session.
    Joined(SessionId),
    /// The alert ended without a session.
    Ended,
    /// The alert was given up: it is a dead letter.
    Dead(DeadReason),
    /// Another alert with a different body has this id.
    UsedId,
}

/// Opens a session for an undecided alert, or links it to the open session of its fingerprint.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenRequest {
    pub alert_id: SessionId,
    /// The decoded alert, with masked texts.
    pub alert: Alert,
    /// The plan of the session.
    pub plan: Plan,
    /// The worker that opens the session.
    pub worker: WorkerId,
    /// Its name for people.
    pub worker_name: String,
    /// Random; a retry keeps it.
    pub token: Uuid,
    /// The time that the lease lasts without a renewal.
    pub lease: Duration,
    /// The longest time that the session may take altogether.
    pub session_timeout: Duration,
    /// The first event of the session.
    pub started: EventDraft,
    /// The first stage, which begins with the session; `None`: a later step begins it.
    pub first_stage: Option<StageBegun>,
    /// The time that a completed investigation of the fingerprint covers later alerts that are no worse than its own.
    pub cooldown: Duration,
    /// No cooldown covers this alert.
    pub force: bool,
    /// `None`: its route has no limit, or the alert does not count for it.
    pub limit: Option<RouteLimit>,
    /// The handling of the alert if it is acknowledged and no session is open.
    pub on_acknowledged: OnAcknowledged,
    /// The session that this one repeats.
    pub retry_of: Option<SessionId>,
    /// The span of this claim; `None` if it is not recorded.
    pub trace: Option<TraceContext>,
    /// The investigation that this alert is a question about. Such a session has no fingerprint and shows the question
    /// (the alert's text) in its second event.
    pub parent: Option<SessionId>,
    /// The route of notifications that sends the answer to this question; `None` for one that no thread asks.
    pub answer_route: Option<String>,
}

/// Asks whether an alert joins a session, is covered by one or exceeds the limit of its route, before it is planned.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinRequest {
    pub alert_id: SessionId,
    /// The decoded alert, with masked texts.
    pub alert: Alert,
    /// The time that a completed investigation of the fingerprint covers later alerts that are no worse than its own.
    pub cooldown: Duration,
    /// No cooldown covers this alert.
    pub force: bool,
    /// The hourly limit, as in [`OpenRequest`].
    pub limit: Option<RouteLimit>,
    /// The name of the worker for people.
    pub worker_name: String,
    /// The handling of the alert if it is acknowledged and no session is open.
    pub on_acknowledged: OnAcknowledged,
}

/// The outcome of an attempt to open a session for an alert.
#[derive(Clone, Debug, PartialEq)]
pub enum Opened {
    /// A new session, leased to the caller.
    Session(Claimed),
    /// Linked to this open session.
    Joined(SessionId),
    /// Linked to this open session, which did not know all of what the alert reports.
    Updated {
        session: SessionId,
        changes: Vec<Change>,
    },
    /// Covered by this session, which completed less than the cooldown ago.
    CoveredByCooldown(SessionId),
    /// This route has opened as many sessions in the last hour as it may: an ended session lists the alert. It may have
    /// the id of the alert.
    Limited { list: SessionId, route: String },
    /// The open session of this fingerprint is being cancelled: alerts cannot join it, and no new session may open yet.
    TargetCancelling(SessionId),
    /// The alert asks for no investigation and no session investigates it: it ended without a session.
    NotInvestigated,
    /// Another worker was faster: the alert's disposition has to be looked up again.
    Raced,
}

/// A session that now belongs to the caller.
#[derive(Clone, Debug, PartialEq)]
pub struct Claimed {
    /// The right to write.
    pub lease: Lease,
    /// The time until the session's deadline by the database's clock; zero when it has passed.
    pub remaining: Duration,
    /// Deaths of workers at the present checkpoint, before this claim.
    pub attempts: u32,
    /// The span of the claim before this one, or of the newest claim of the session that this one repeats or asks
    /// about; `None` if that was not recorded.
    pub previous: Option<TraceContext>,
    /// A person has asked to cancel the session.
    pub cancel_requested: bool,
}

/// The outcome of a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    /// Taken over; `session_resumed` is written.
    Taken(Claimed),
    /// Another worker's lease is valid for this long.
    Busy(Duration),
    /// The session waits for a person, without an owner: a decision or the first expiry queues it again.
    Waiting,
    /// The session is over and may have to be settled.
    Ended {
        /// Whether the session is settled.
        settled: bool,
    },
    /// A newer version has written the session.
    Incompatible,
    /// There is no such session.
    Unknown,
}

/// The outcome of a renewal for one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// The lease is valid for another period.
    Renewed {
        /// The session's last event number: grows by joins.
        last_seq: u32,
        /// The number of the last update of its alert.
        updates: u32,
        /// A person has asked to cancel the session.
        cancel_requested: bool,
    },
    /// A statement holds the row now: neither renewed nor lost.
    Locked,
    /// Another epoch owns the session.
    Lost,
    /// The session has ended under this lease.
    Ended,
}

/// The outcome of a cancel request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelOutcome {
    /// It is stored; the owner of the session ends it.
    Requested,
    /// The session or alert had no owner, and has ended with this request.
    Cancelled,
    /// There is nothing to cancel: it has ended, has joined another session, or is unknown.
    Nothing,
}

/// Alerts and leases.
pub trait Sessions: Send + Sync + 'static {
    /// Records the alert on its first delivery, and counts this attempt to prepare it.
    fn receive(
        &self,
        received: Received,
    ) -> impl Future<Output = Result<Disposition, StoreError>> + Send;

    /// Joins or ends the alert, as [`Sessions::open`] would; `None` when it needs a new session.
    fn join(
        &self,
        request: JoinRequest,
    ) -> impl Future<Output = Result<Option<Opened>, StoreError>> + Send;

    /// The time since the alert's first delivery, by the store's clock.
    fn waited(&self, alert: SessionId)
    -> impl Future<Output = Result<Duration, StoreError>> + Send;

    /// Opens, joins or ends the alert, in one statement.
    fn open(&self, request: OpenRequest)
    -> impl Future<Output = Result<Opened, StoreError>> + Send;

    /// Gives an undecided alert up. Idempotent.
    fn give_up(
        &self,
        alert: SessionId,
        refusal: Refusal,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Takes over a session whose lease has expired, or whose owner is among the predecessors of the request.
    fn claim(
        &self,
        session: SessionId,
        claim: ClaimRequest,
    ) -> impl Future<Output = Result<Claim, StoreError>> + Send;

    /// The running sessions of these workers, which are dead. Without those at whose present checkpoint another worker
    /// has died before: a claim does not take them before their lease expires.
    fn inherited(
        &self,
        predecessors: Vec<WorkerId>,
    ) -> impl Future<Output = Result<Vec<Inherited>, StoreError>> + Send;

    /// Renews all leases of this worker in one statement; one answer a lease, in order.
    fn renew(
        &self,
        leases: Vec<Lease>,
        period: Duration,
    ) -> impl Future<Output = Result<Vec<Renewal>, StoreError>> + Send;

    /// Releases a session: no owner, next epoch, no attempt counted. The event of the next claim has the reason, one
    /// word.
    fn release(
        &self,
        lease: Lease,
        reason: &'static str,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Releases a session whose attempt stays counted.
    fn release_counted(
        &self,
        lease: Lease,
        reason: &'static str,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Renews one lease and waits for its row, at most as long as the store waits for any row. [`Renewal::Locked`] when
    /// the row stayed locked, or when the lease has changed.
    fn renew_one(
        &self,
        lease: Lease,
        period: Duration,
    ) -> impl Future<Output = Result<Renewal, StoreError>> + Send;

    /// Whether the session or alert has ended, and the dead letter that it owes.
    fn standing(
        &self,
        session: SessionId,
    ) -> impl Future<Output = Result<SettlementStatus, StoreError>> + Send;

    /// Restores events that the store has lost and the stream still has: the events keep their numbers, events that the
    /// store has written since move after them, and one more event records the recovery. If the stream has the end of
    /// the session, the session has ended.
    fn recover(
        &self,
        recover: Recover,
    ) -> impl Future<Output = Result<Recovered, StoreError>> + Send;

    /// Marks the session or alert as settled, deletes the raw body and masks its message, which [`Sessions::standing`]
    /// has read. Idempotent.
    fn settled(
        &self,
        session: SessionId,
        message: StoredMessage,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Refunds the attempt of this delivery: a service was unavailable, or another alert was in the way. Idempotent
    /// only as far as [`Sessions::receive`] is: one call per delivery.
    fn refund_attempt(
        &self,
        alert: SessionId,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Records a request to cancel a session, which its next renewal returns. Ends a session or an undecided alert that
    /// no worker has; `by` is the name of the person who asks, for that end.
    fn cancel(
        &self,
        session: SessionId,
        by: Option<String>,
    ) -> impl Future<Output = Result<CancelOutcome, StoreError>> + Send;

    /// Finds orphaned rows, and skips locked ones. A row is returned to one caller only per `interval`.
    fn sweep(&self, sweep: Sweep) -> impl Future<Output = Result<Vec<Swept>, StoreError>> + Send;

    /// Records that a lost message was queued again under this sequence.
    fn requeued(
        &self,
        alert: SessionId,
        stream_sequence: u64,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Deletes at most about `limit` rows of each kind that are older than `retention`. Empty when no such row is left.
    fn prune(
        &self,
        retention: Retention,
        limit: u32,
    ) -> impl Future<Output = Result<Pruned, StoreError>> + Send;

    /// Adds the words of the search to some ended sessions that lack them.
    fn complete_words(&self) -> impl Future<Output = Result<Worded, StoreError>> + Send;

    /// Whether the store takes writes: it performs a small one.
    fn reachable(&self) -> impl Future<Output = bool> + Send;
}

/// The progress of adding search words to ended sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Worded {
    /// Sessions that have got words.
    pub sessions: u64,
    /// Whether every session up to the oldest one has been looked at.
    pub is_all: bool,
}

/// A request to claim a session: the worker, and the duration of the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRequest {
    /// The process.
    pub worker: WorkerId,
    /// Its name for people.
    pub worker_name: String,
    /// Random; a retry keeps it.
    pub token: Uuid,
    /// The time that the lease lasts without a renewal.
    pub lease: Duration,
    /// The sequence of the message in the stream of alerts, for the sweeper.
    pub stream_sequence: Option<u64>,
    /// The span of this claim; `None` if it is not recorded.
    pub trace: Option<TraceContext>,
    /// The owner of a lease that expired less than this ago could not renew it, so its expiry counts as no death.
    pub outage_grace: Duration,
    /// Workers that are known to be dead: their leases count as expired.
    pub predecessors: Vec<WorkerId>,
}

/// A session of a worker that died in the pod of this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inherited {
    pub session_id: SessionId,
    /// The span of its producer, as the headers of the alert have it.
    pub trace: Option<TraceContext>,
}

/// Published events that the store has lost and has to restore.
#[derive(Clone, Debug, PartialEq)]
pub struct Recover {
    /// Random; a retry keeps it.
    pub id: Uuid,
    pub session_id: SessionId,
    /// The lease of the session's owner; `None` for a session that is over.
    pub lease: Option<Lease>,
    /// The events of the stream that the table lacks.
    pub divergence: Divergence,
}

/// The state of a session whose lost events were restored from the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovered {
    /// The session continues after them.
    GoesOn,
    /// The session has ended: its last event is among them.
    Ended,
}
