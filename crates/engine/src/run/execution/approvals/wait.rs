//! The wait for people: the outcomes are read again whenever they may have changed, and at the first expiry.
//!
//! A renewal reports events that another worker has written, so a vote is noticed a third of a lease later at most.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::Judged;
use super::close::Closing;
use super::park::Attempt;
use crate::ports::{Journal as _, Outcomes, WaitingCall};
use crate::run::control::{Interrupted, ReleaseReason, STORE_BOUND};
use crate::run::execution::Execution;
use crate::run::numbers::Numbers;
use crate::world::World;
use tarsy_core::alert::AlertStatus;
use tarsy_core::alert_update;
use tarsy_core::execution::decide::Asked;
use tarsy_core::execution::entry::{ApprovalEnded, ApprovalOutcome, Entry};
use tarsy_core::plan::WhenResolved;

/// The shortest time until the outcomes are read again, when a request is about to expire.
const SHORTEST_WAIT: Duration = Duration::from_millis(50);

/// A wait for the end of one request.
struct Wait {
    judged: Judged,
    /// The number of the request.
    event: u32,
    /// The last update of the alert that this wait has read.
    update: u32,
    is_resolved: bool,
    /// The snapshot with which the store did not park the session.
    not_parked: Option<u32>,
}

/// The outcome of one look at the requests.
enum Look {
    /// Something may have changed.
    Again,
    /// The run has to stop, or the time for tools is used up.
    Stop,
    /// The request has an end.
    Ended(Closing),
}

impl<W: World> Execution<W> {
    /// Waits until the first of these requests has an end, and commits it; a call that was approved is sent.
    pub(in crate::run::execution) async fn wait_for_people(
        &mut self,
        asked: Vec<Asked>,
    ) -> Result<(), Interrupted> {
        let first = asked.first().ok_or_else(|| {
            ReleaseReason::Incompatible("an execution waits for no request".to_owned())
        })?;
        let mut wait = Wait {
            judged: Judged::new(&self.state, &first.call_id)?,
            event: first.event,
            update: self.state.known_updates(),
            is_resolved: false,
            not_parked: None,
        };
        while !self.must_wrap_up() {
            let waiting = self.room.enter(self.id, wait.event);
            let look = self.look(&mut wait).await;
            // The session is not parked while an end is being committed.
            drop(waiting);
            match look? {
                Look::Again => {}
                Look::Stop => return Ok(()),
                Look::Ended(closing) => {
                    if self.close(&wait.judged, closing).await? {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    async fn look(&self, wait: &mut Wait) -> Result<Look, Interrupted> {
        // From before the read, so that no change is missed.
        let mut changes = self.room.changes();
        let Some(outcomes) = self.outcomes().await? else {
            return Ok(Look::Stop);
        };
        // From the snapshot whose event number a park compares, so that no resolution lies between the two.
        self.control.has_updates(outcomes.updates);
        let found = outcomes
            .requests
            .iter()
            .find(|request| request.execution_id == self.id && request.event == wait.event);
        let request = found.ok_or_else(|| {
            let event = wait.event;
            ReleaseReason::Incompatible(format!("the store has no open request {event}"))
        })?;
        if let Some(closing) = closing(&wait.judged, request, &outcomes) {
            return Ok(Look::Ended(closing));
        }
        let withdraws = wait.judged.rule.on_resolved == WhenResolved::Withdraw;
        if withdraws && self.is_resolved(wait).await? {
            let ended = undecided(&wait.judged, request, ApprovalOutcome::Withdrawn);
            return Ok(Look::Ended(Closing::Unsent(ended, outcomes.event_seq)));
        }
        match self.park(&outcomes, &mut changes).await? {
            Attempt::NotYet => {}
            Attempt::Changed if wait.not_parked != Some(outcomes.event_seq) => {
                wait.not_parked = Some(outcomes.event_seq);
                return Ok(Look::Again);
            }
            Attempt::Changed | Attempt::Unknown => return self.pause_parking().await,
        }
        self.control.permit()?;
        let left = request.left.max(SHORTEST_WAIT);
        let seen = Numbers {
            event: outcomes.event_seq,
            update: outcomes.updates,
        };
        self.until_changed(left, seen, changes).await
    }

    /// Waits for an event of the session, an update of the alert, a sibling, or the end of the time.
    async fn until_changed(
        &self,
        left: Duration,
        seen: Numbers,
        mut changes: watch::Receiver<u64>,
    ) -> Result<Look, Interrupted> {
        let longest = match self.time {
            Some(time) if self.state.may_run_out_of_time() => {
                left.min(time.soft.saturating_duration_since(Instant::now()))
            }
            Some(_) | None => left,
        };
        let changed = async {
            tokio::select! {
                // The room lives as long as this execution.
                _ = changes.changed() => {}
                () = self.control.changed_since(seen) => {}
            }
        };
        let waited = self.control.pause_until(longest, changed).await;
        // A session that was parked has lost its lease as well.
        if let Some(interrupted) = self.room.interrupted() {
            return Err(interrupted);
        }
        Ok(match waited? {
            Some(()) => Look::Again,
            None => Look::Stop,
        })
    }

    /// Waits before the session is parked again.
    async fn pause_parking(&self) -> Result<Look, Interrupted> {
        let waited = self.control.pause(super::RETRY_DELAY).await?;
        self.control.permit()?;
        Ok(match waited {
            Some(()) => Look::Again,
            None => Look::Stop,
        })
    }

    /// Whether the alert was resolved after the call was asked about. The model gets the update before its next call.
    async fn is_resolved(&self, wait: &mut Wait) -> Result<bool, Interrupted> {
        let last = self.control.updates();
        if last > wait.update {
            let known = self.state.known_updates();
            let read = self
                .ports
                .journal
                .alert_updates(self.lease.session_id, known);
            let updates = self.control.within(STORE_BOUND, read).await?;
            wait.update = last;
            wait.is_resolved = matches!(
                alert_update::entry(&updates),
                Some(Entry::AlertUpdated(updated)) if updated.status == Some(AlertStatus::Resolved)
            );
        }
        Ok(wait.is_resolved)
    }
}

/// The end that the store has of a request; `None` while it is open.
fn closing(judged: &Judged, request: &WaitingCall, outcomes: &Outcomes) -> Option<Closing> {
    let Some(decided) = &request.decided else {
        let expired = request.left.is_zero();
        return expired.then(|| {
            let ended = undecided(judged, request, ApprovalOutcome::Expired);
            Closing::Unsent(ended, outcomes.event_seq)
        });
    };
    let mut ended = ApprovalEnded {
        by: decided.by.clone(),
        comment: decided.comment.clone(),
        channel: decided.channel,
        decided_at: Some(decided.at),
        waited_secs: request.waited.as_secs(),
        ..ApprovalEnded::new(&judged.call.id, decided.outcome)
    };
    let is_approved = decided.outcome == ApprovalOutcome::Approved;
    if is_approved && !outcomes.is_frozen {
        return Some(Closing::Approved(ended));
    }
    if is_approved {
        ended.outcome = ApprovalOutcome::Frozen;
    }
    Some(Closing::Unsent(ended, outcomes.event_seq))
}

/// The end of a request that no person made.
fn undecided(judged: &Judged, request: &WaitingCall, outcome: ApprovalOutcome) -> ApprovalEnded {
    ApprovalEnded {
        waited_secs: request.waited.as_secs(),
        ..ApprovalEnded::new(&judged.call.id, outcome)
    }
}
