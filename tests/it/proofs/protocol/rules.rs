//! The rules of delivery, each of which can be switched off, and how far a run of the model goes.

use super::state::{Faults, Id};

/// What the protocol relies on. Rules whose absence costs nothing but time (NAK after the release's commit, adoption
/// of a second delivery, settling beside the slots, jitter) are followed by the model, but there is nothing to be seen
/// when they are off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// A delivery is counted before its body is read. `store/sql/receive.sql`
    InsertFirst,
    /// Looking for the open session and joining it are one statement that locks it. `store/sql/open.sql`
    JoinLocksTarget,
    /// A fingerprint has one open session: a partial unique index. `alert_sessions_open` in the baseline migration
    OneOpenSession,
    /// A joined alert has its own place and event. `store/sql/open.sql`
    JoinedHasPlace,
    /// A session that is being cancelled takes no alert along. `store/sql/open.sql`
    ClosingTakesNothing,
    /// A delivery that had to wait for such a session is no attempt. `Sessions::spare`
    WaitingIsNoAttempt,
    /// A session is claimed only when nobody's lease lives. `store/sql/claim.sql`
    ClaimWaits,
    /// Every write compares the epoch. `store/sql/checkpoint.sql`, `finish.sql`, `step.sql`
    Fence,
    /// A refused checkpoint takes no event numbers. `store/sql/checkpoint.sql`
    AtomicNumbers,
    /// A release takes the right to write unavailable at once. `store/sql/release.sql`
    ReleaseEndsEpoch,
    /// A release is no attempt. `store/sql/release.sql`
    ReleaseIsNoAttempt,
    /// What is published is the table's row after the stream's last event. `bus/timeline/publisher.rs`
    PublishFromTable,
    /// A refused publish says nothing about ownership. `bus/timeline/publisher.rs`
    RefusalIsNoVerdict,
    /// What is over is settled before it is acknowledged. `engine/delivery/settler.rs`
    SettleBeforeAck,
    /// It is settled only when everything is published. `engine/delivery/settle.rs`
    PublishBeforeSettled,
    /// It is settled only when its dead letter is stored. `engine/delivery/settle.rs`
    DeadLetterBeforeSettled,
    /// The sweeper queues an alert again whose job is gone. `Sessions::sweep`, `Queue::requeue`
    SweepLostJobs,
    /// A job is gone, too, if its sequence belongs to another alert now. `Queue::holds`
    SweepComparesIds,
    /// The sweeper settles what nobody else does. `Sessions::sweep`
    SweepUnsettled,
}

impl Rule {
    pub(super) const ALL: [Self; 19] = [
        Self::InsertFirst,
        Self::JoinLocksTarget,
        Self::OneOpenSession,
        Self::JoinedHasPlace,
        Self::ClosingTakesNothing,
        Self::WaitingIsNoAttempt,
        Self::ClaimWaits,
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

/// How far a run goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Alerts that are queued at the start, all of one fingerprint.
    pub(super) alerts: u8,
    /// Workers that do something at the same time.
    pub(super) workers: usize,
    /// This one kills whoever reads it.
    pub(super) poison: Option<Id>,
    /// Deaths at one checkpoint, or at reading, before an alert is given up.
    pub(super) attempts: u8,
    /// What may go wrong.
    pub(super) faults: Faults,
}
