//! The rules of delivery, each of which can be switched off, and the bounds of a run.

use super::state::{Faults, Id};

/// The rules that the protocol relies on. The model also follows rules that only save time (NAK after the commit of the
/// release, adoption of a second delivery, settling beside the slots, jitter); they are not listed, because no property
/// breaks without them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// A delivery is counted before its body is decoded. `store/sql/receive.sql`
    InsertFirst,
    /// One statement finds the open session, locks it and joins it. `store/sql/open.sql`
    JoinLocksTarget,
    /// A fingerprint has one open session: a partial unique index. `alert_sessions_open` in the baseline migration
    OneOpenSession,
    /// A joined alert has a disposition and an event of its own. `store/sql/open.sql`
    JoinedIsDecided,
    /// No alert joins a session that is being cancelled. `store/sql/open.sql`
    CancellingTakesNothing,
    /// A delivery that had to wait for such a session counts no attempt. `Sessions::refund_attempt`
    WaitingIsNoAttempt,
    /// A session is claimed only when its lease has expired. `store/sql/claim.sql`
    ClaimWaits,
    /// Before that, only a worker inherits it that has the proof of its owner's death. `roles/worker/pod.rs`
    InheritFromDead,
    /// Every write compares the epoch. `store/sql/checkpoint.sql`, `finish.sql`, `step.sql`
    Fence,
    /// A refused checkpoint draws no event numbers. `store/sql/checkpoint.sql`
    AtomicNumbers,
    /// A release ends the right to write at once. `store/sql/release.sql`
    ReleaseEndsEpoch,
    /// A release counts no attempt. `store/sql/release.sql`
    ReleaseIsNoAttempt,
    /// The publisher publishes the row that follows the last event of the stream. `bus/timeline/publisher.rs`
    PublishFromTable,
    /// A refused publish says nothing about ownership. `bus/timeline/publisher.rs`
    RefusalIsNoVerdict,
    /// An ended alert or session is settled before its message is acknowledged. `engine/delivery/settler/mod.rs`
    SettleBeforeAck,
    /// It is settled only after all its events are published. `engine/delivery/settle.rs`
    PublishBeforeSettled,
    /// It is settled only after its dead letter is stored. `engine/delivery/settle.rs`
    DeadLetterBeforeSettled,
    /// The sweeper queues an alert again when its job is lost. `Sessions::sweep`, `Queue::requeue`
    SweepLostJobs,
    /// A job is also lost when another alert now has its sequence. `Queue::holds`
    SweepComparesIds,
    /// The sweeper settles what no worker settles. `Sessions::sweep`
    SweepUnsettled,
}

impl Rule {
    pub(super) const ALL: [Self; 20] = [
        Self::InsertFirst,
        Self::JoinLocksTarget,
        Self::OneOpenSession,
        Self::JoinedIsDecided,
        Self::CancellingTakesNothing,
        Self::WaitingIsNoAttempt,
        Self::ClaimWaits,
        Self::InheritFromDead,
        Self::Fence,
        Self::AtomicNumbers,
        Self::ReleaseEndsEpoch,
        Self::ReleaseIsNoAttempt,
        Self::PublishFromTable,
        Self::RefusalIsNoVerdict,
        Self::SettleBeforeAck,
        Self::PublishBeforeSettled,
        Self::DeadLetterBeforeSettled,
        Self::SweepLostJobs,
        Self::SweepComparesIds,
        Self::SweepUnsettled,
    ];
}

/// The bounds of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Alerts that are queued at the start, all of one fingerprint.
    pub(super) alerts: u8,
    /// Workers that act at the same time.
    pub(super) workers: usize,
    /// This alert kills the worker that decodes it.
    pub(super) poison: Option<Id>,
    /// Deaths at one checkpoint, or while the alert is prepared, before the alert is given up.
    pub(super) attempts: u8,
    /// The faults that may happen.
    pub(super) faults: Faults,
}
