//! The effect of the store's statements on its rows. Each function is one statement, which happens completely or not at
//! all.

use super::model::Protocol;
use super::rules::Rule;
use super::state::{CHECKPOINTS, Checkpoint, Disposition, Event, Id, Row, State, Stop};

/// The result of a fenced write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Committed,
    /// Another epoch owns the session.
    LeaseLost,
    /// The session ended under this epoch: an earlier write has arrived late.
    Ended,
    /// The checkpoint has another number: an earlier write has arrived late.
    Refused,
}

/// The decision of `open.sql`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decided {
    Opened,
    Joined,
    /// The open session is being cancelled.
    TargetCancelling,
    /// Another worker was faster.
    Raced,
}

impl Protocol {
    /// `receive.sql` and, for an alert with too many attempts, `give_up.sql`.
    pub(super) fn receive(&self, row: &mut Row, sequence: u8) {
        if !self.keeps(Rule::InsertFirst) && row.disposition == Disposition::Unknown {
            return;
        }
        row.sequence = sequence;
        if row.disposition == Disposition::Unknown {
            row.disposition = Disposition::Undecided;
        }
        if row.disposition == Disposition::Undecided {
            row.reads += 1;
            if row.reads > self.bounds.attempts {
                row.disposition = Disposition::Dead;
                row.owes = true;
                row.events.push((Event::Ended, 0));
            }
        }
    }

    /// `open.sql`. `seen` is the target that an earlier statement saw, when a rule is switched off.
    pub(super) fn open(&self, state: &mut State, alert: Id, seen: Option<Option<Id>>) -> Decided {
        if !matches!(
            state.row(alert).disposition,
            Disposition::Unknown | Disposition::Undecided
        ) {
            return Decided::Raced;
        }
        let Some(target) = seen.unwrap_or_else(|| state.open_beside(alert)) else {
            let row = state.row_mut(alert);
            (row.disposition, row.open, row.leased) = (Disposition::Opened, true, true);
            (row.epoch, row.attempts) = (1, 1);
            row.events.push((Event::Started, 1));
            return Decided::Opened;
        };
        let session = state.row_mut(target);
        let closing = session.stop == Some(Stop::Cancel);
        if closing && self.keeps(Rule::CancellingTakesNothing) {
            let row = state.row_mut(alert);
            // `Sessions::refund_attempt`
            row.reads -= u8::from(self.keeps(Rule::WaitingIsNoAttempt) && row.reads > 0);
            return Decided::TargetCancelling;
        }
        session
            .events
            .push((Event::AlertJoined(alert), session.epoch));
        let row = state.row_mut(alert);
        row.joined_too_late = closing;
        if self.keeps(Rule::JoinedIsDecided) {
            row.disposition = Disposition::Joined(target);
            row.events.push((Event::Joined, 0));
        }
        Decided::Joined
    }

    /// `claim.sql`; `None` while another lease is valid. Returns the epoch, the checkpoint and whether the session only
    /// has to be ended.
    pub(super) fn claim(&self, row: &mut Row, sequence: Option<u8>) -> Option<(u8, u8, bool)> {
        if row.leased && self.keeps(Rule::ClaimWaits) {
            return None;
        }
        row.epoch += 1;
        row.attempts += 1;
        (row.leased, row.released) = (true, false);
        row.sequence = sequence.unwrap_or(row.sequence);
        row.events.push((Event::Resumed, row.epoch));
        Some((
            row.epoch,
            row.checkpoint,
            row.stop.is_some() || self.exhausted(row),
        ))
    }

    fn exhausted(&self, row: &Row) -> bool {
        row.attempts > self.bounds.attempts
    }

    fn fence(&self, row: &Row, epoch: u8) -> Result<(), Written> {
        if !self.keeps(Rule::Fence) || row.open && row.epoch == epoch {
            Ok(())
        } else if row.epoch == epoch {
            Err(Written::Ended)
        } else {
            Err(Written::LeaseLost)
        }
    }

    /// `checkpoint.sql`, and `finish.sql` for the last one. Each write renews the lease.
    pub(super) fn checkpoint(&self, row: &mut Row, written: Checkpoint) -> Written {
        if let Err(lost) = self.fence(row, written.epoch) {
            return lost;
        }
        if row.checkpoint != written.from {
            if !self.keeps(Rule::AtomicNumbers) {
                row.events.push((Event::Missing, written.epoch));
            }
            return Written::Refused;
        }
        row.checkpoint += 1;
        row.attempts = 1;
        row.open = row.checkpoint < CHECKPOINTS;
        row.leased = row.open;
        row.events.push((
            if row.open {
                Event::Work(row.checkpoint)
            } else {
                Event::Ended
            },
            written.epoch,
        ));
        Written::Committed
    }

    /// `finish.sql` for a session that has to end early.
    pub(super) fn end_now(&self, row: &mut Row, epoch: u8) -> Written {
        if let Err(lost) = self.fence(row, epoch) {
            return lost;
        }
        row.owes = row.stop.is_none() && self.exhausted(row);
        (row.open, row.leased) = (false, false);
        row.events.push((Event::Ended, epoch));
        Written::Committed
    }

    /// `cancel.sql` for a session without an owner, or with one that does not answer.
    pub(super) fn end_cancelled(row: &mut Row) {
        row.epoch += 1;
        (row.open, row.leased) = (false, false);
        row.events.push((Event::Ended, row.epoch));
    }

    /// `release.sql`.
    pub(super) fn release(&self, row: &mut Row, epoch: u8) -> Written {
        if let Err(lost) = self.fence(row, epoch) {
            return lost;
        }
        (row.leased, row.released) = (false, true);
        row.epoch += u8::from(self.keeps(Rule::ReleaseEndsEpoch));
        row.attempts -= u8::from(self.keeps(Rule::ReleaseIsNoAttempt) && row.attempts > 0);
        Written::Committed
    }

    /// Whether the sweep queues the alert again: it is undecided, or open without a valid lease, and its job is lost.
    pub(super) fn lost_its_job(&self, state: &State, alert: Id) -> bool {
        let row = state.row(alert);
        let idle = row.disposition == Disposition::Undecided || row.open && !row.leased;
        let job = state.job(row.sequence);
        let gone = if self.keeps(Rule::SweepComparesIds) {
            job.is_none_or(|job| job.alert != alert)
        } else {
            job.is_none()
        };
        self.keeps(Rule::SweepLostJobs)
            && idle
            && gone
            && usize::from(state.next_sequence) < state.jobs.len()
    }
}
