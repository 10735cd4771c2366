//! Alerts and leases: who may work on what.

use std::future::Future;
use std::time::Duration;

use serde_json::Value;
use uuid::Uuid;

use super::broker::Divergence;
use super::intake::{Received, Refusal};
use super::journal::{Lease, StoreError};
use super::pruned::Pruned;
use super::standing::SettlementStatus;
use crate::config::Retention;
use crate::investigation::alert::Alert;
use crate::investigation::ids::{SessionId, WorkerId};
use crate::investigation::plan::Plan;
use crate::investigation::timeline::EventDraft;

/// Where an alert is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Nowhere yet: decode it, then open, join or bury it.
    Undecided {
        /// Deliveries that began to read it, this one included and those that were spared left out.
        attempts: u32,
    },
    /// It opened the session that has its id.
    Opened,
    /// Another session took it along.
    Joined(SessionId),
    /// It ended without a session.
    Ended,
    /// It was given up.
    Dead(DeadReason),
    /// The id is taken by another body.
    UsedId,
}

/// Why an alert was given up. The word is part of the dead letter's subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeadReason {
    /// The body is not text.
    Undecodable,
    /// The body has no content.
    Empty,
    /// The body is larger than `max_alert_bytes`.
    TooLarge,
    /// The id came before, with another body.
    UsedId,
    /// The header with the id holds no UUIDv7.
    InvalidId,
    /// The header with the chain names none.
    UnknownChain,
    /// The header with the parent names no investigation that is over.
    InvalidParent,
    /// Too many workers died at the same step of it.
    AttemptsExhausted,
}

impl DeadReason {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Undecodable,
        Self::Empty,
        Self::TooLarge,
        Self::UsedId,
        Self::InvalidId,
        Self::UnknownChain,
        Self::InvalidParent,
        Self::AttemptsExhausted,
    ];

    /// The word in subjects, headers, the store and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Undecodable => "undecodable",
            Self::Empty => "empty",
            Self::TooLarge => "too_large",
            Self::UsedId => "used_id",
            Self::InvalidId => "invalid_id",
            Self::UnknownChain => "unknown_chain",
            Self::InvalidParent => "invalid_parent",
            Self::AttemptsExhausted => "attempts_exhausted",
        }
    }

    /// The reason of a word; `None` for one this version does not know.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == word)
    }
}

/// Opens a session for an undecided alert, or links it to the open session of its fingerprint.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenRequest {
    /// The alert.
    pub alert_id: SessionId,
    /// As understood, with the masked text that everything else sees.
    pub alert: Alert,
    /// What the session will do.
    pub plan: Plan,
    /// Who opens it.
    pub worker: WorkerId,
    /// Its name for people.
    pub worker_name: String,
    /// Random; a retry keeps it.
    pub token: Uuid,
    /// How long the lease lasts without a renewal.
    pub lease: Duration,
    /// How long the session may take altogether.
    pub session_timeout: Duration,
    /// How the first event describes it.
    pub started: EventDraft,
    /// How long a completed investigation of the fingerprint answers for later alerts that are no worse than its own.
    pub cooldown: Duration,
    /// The cooldown does not hold for this alert.
    pub force: bool,
    /// The session that this one does again.
    pub retry_of: Option<SessionId>,
    /// The investigation that this alert is a question about. Such a session has no fingerprint and tells the question
    /// (the alert's text) in its second event.
    pub parent: Option<SessionId>,
}

/// Asks who takes an alert along or answers for it, before anything is planned.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinRequest {
    /// The alert.
    pub alert_id: SessionId,
    /// As understood, with the masked text that everything else sees.
    pub alert: Alert,
    /// How long a completed investigation of the fingerprint answers for later alerts that are no worse than its own.
    pub cooldown: Duration,
    /// The cooldown does not hold for this alert.
    pub force: bool,
}

/// What became of an alert that was to open a session.
#[derive(Clone, Debug, PartialEq)]
pub enum Opened {
    /// A new session, leased to the caller.
    Session(Claimed),
    /// Linked to this open session.
    Joined(SessionId),
    /// Answered for by this session, which completed less than the cooldown ago.
    CoveredByCooldown(SessionId),
    /// The open session of the fingerprint is being cancelled: it takes nothing along, and no other can begin yet.
    TargetCancelling(SessionId),
    /// Only resolved, and nobody investigates it: ended without a session.
    NotInvestigated,
    /// Another worker was faster: look at the alert's place again.
    Raced,
}

/// A session that now belongs to the caller.
#[derive(Clone, Debug, PartialEq)]
pub struct Claimed {
    /// The right to write.
    pub lease: Lease,
    /// Until the session's deadline by the database's clock; zero when it has passed.
    pub remaining: Duration,
    /// Deaths at the present checkpoint, this claim excluded.
    pub attempts: u32,
    /// Somebody asked to cancel it.
    pub cancel_requested: bool,
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    /// Taken over; `session_resumed` is written.
    Taken(Claimed),
    /// Somebody's lease lives for this long.
    Busy(Duration),
    /// The session is over and may have to be settled.
    Ended {
        /// Everything is published already.
        settled: bool,
    },
    /// A newer version wrote it.
    Incompatible,
    /// There is no such session.
    Unknown,
}

/// What a renewal found for one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// Good for another period.
    Renewed {
        /// The session's last event number: grows by joins.
        last_seq: u32,
        /// Somebody asked to cancel the session.
        cancel_requested: bool,
    },
    /// A statement holds the row now: neither renewed nor lost.
    Locked,
    /// Another epoch owns the session.
    Lost,
    /// It ended under this very lease.
    Ended,
}

/// Alerts and leases.
pub trait Sessions: Send + Sync + 'static {
    /// Insert first: makes the alert known and counts the delivery.
    fn receive(&self, received: Received) -> impl Future<Output = Result<Disposition, StoreError>> + Send;

    /// Joins or ends the alert, as [`Sessions::open`] would; `None` when it needs a session of its own.
    fn join(&self, request: JoinRequest) -> impl Future<Output = Result<Option<Opened>, StoreError>> + Send;

    /// Since an alert was delivered for the first time, by the store's clock.
    fn waited(&self, alert: SessionId) -> impl Future<Output = Result<Duration, StoreError>> + Send;

    /// Opens, joins or ends the alert, in one statement.
    fn open(&self, request: OpenRequest) -> impl Future<Output = Result<Opened, StoreError>> + Send;

    /// Gives an undecided alert up. Idempotent.
    fn give_up(&self, alert: SessionId, refusal: Refusal) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Takes a session whose lease has run out.
    fn claim(&self, session: SessionId, claim: ClaimRequest) -> impl Future<Output = Result<Claim, StoreError>> + Send;

    /// Renews all leases of this worker in one statement; one answer a lease, in order.
    fn renew(
        &self,
        leases: Vec<Lease>,
        period: Duration,
    ) -> impl Future<Output = Result<Vec<Renewal>, StoreError>> + Send;

    /// Hands a session back: no owner, next epoch, no attempt counted.
    fn release(&self, lease: Lease) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The same after what was an attempt all the same: it stays counted.
    fn release_counted(&self, lease: Lease) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Renews one lease and waits for its row, at most as long as the store waits for any. [`Renewal::Locked`] when that
    /// was not long enough, or when the lease is not what it was.
    fn renew_one(&self, lease: Lease, period: Duration) -> impl Future<Output = Result<Renewal, StoreError>> + Send;

    /// Whether the session or alert is over, and the dead letter it owes.
    fn standing(&self, session: SessionId) -> impl Future<Output = Result<SettlementStatus, StoreError>> + Send;

    /// Takes back what the store has lost and the stream still has: the events return under their numbers, what the store
    /// has written since moves behind them, and an event tells of it. Where the stream has the session's end, the session
    /// has ended.
    fn recover(&self, recover: Recover) -> impl Future<Output = Result<Recovered, StoreError>> + Send;

    /// Marks it as settled and forgets the raw body. Idempotent.
    fn settled(&self, session: SessionId) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// This delivery of an undecided alert was no attempt to read it: something it needs was unavailable, or another alert was
    /// in the way. Idempotent only as far as [`Sessions::receive`] is: one call a delivery.
    fn refund_attempt(&self, alert: SessionId) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Asks for a session to be cancelled; its next renewal or claim brings it back. `false` when it is over or not known.
    fn cancel(&self, session: SessionId) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// What nobody seems to take care of. Rows that a statement holds now are skipped, and what is found is not found
    /// again by anybody for one `interval`.
    fn sweep(&self, sweep: Sweep) -> impl Future<Output = Result<Vec<Swept>, StoreError>> + Send;

    /// A lost job was queued again under this sequence.
    fn requeued(&self, alert: SessionId, stream_sequence: u64) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Deletes at most about `limit` rows of each kind that are older than `retention` keeps. Empty when nothing is left.
    fn prune(&self, retention: Retention, limit: u32) -> impl Future<Output = Result<Pruned, StoreError>> + Send;

    /// One small write: whether the store takes writes.
    fn reachable(&self) -> impl Future<Output = bool> + Send;
}

/// Who claims, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRequest {
    /// The process.
    pub worker: WorkerId,
    /// Its name for people.
    pub worker_name: String,
    /// Random; a retry keeps it.
    pub token: Uuid,
    /// How long the lease lasts without a renewal.
    pub lease: Duration,
    /// The delivery's place in the stream, for the sweeper.
    pub stream_sequence: Option<u64>,
    /// A lease that ran out less than this ago could not be renewed by anybody: its owner is not counted as dead.
    pub outage_grace: Duration,
}

/// Published events that the store shall take back.
#[derive(Clone, Debug, PartialEq)]
pub struct Recover {
    /// Random; a retry keeps it.
    pub id: Uuid,
    /// The session.
    pub session_id: SessionId,
    /// Its owner's; `None` for a session that is over.
    pub lease: Option<Lease>,
    /// What the stream has.
    pub divergence: Divergence,
}

/// What became of a session whose events were taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovered {
    /// It goes on behind them.
    GoesOn,
    /// It has ended, as the stream tells.
    Ended,
}

/// How far a sweep goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// Time between two sweeps.
    pub interval: Duration,
    /// Rows younger than this are left to their owners.
    pub min_age: Duration,
    /// At most so many of each kind.
    pub limit: u32,
}

/// Something that a sweep found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Swept {
    /// Past its deadline, and nobody's lease lives.
    Overdue(SessionId),
    /// Undecided, or open without a live lease: its job may be gone from the stream.
    Idle(IdleAlert),
    /// Over, and not settled.
    Unsettled(SessionId),
}

/// An alert that waits for its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleAlert {
    /// The alert.
    pub alert_id: SessionId,
    /// Nobody has decided where it goes.
    pub undecided: bool,
    /// The subject it came on.
    pub subject: String,
    /// Allow-listed headers, as received.
    pub headers: Value,
    /// The body as received; `None` when it was too large to be kept.
    pub body: Option<Vec<u8>>,
    /// Where its job was in the stream of alerts.
    pub stream_sequence: u64,
}
