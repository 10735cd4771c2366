//! Parking: a session of which every open execution waits gives up its lease.
//!
//! The store compares the event number of the snapshot in which nothing was decided. A vote takes a number, so none is
//! lost between the read and the park.

use tokio::sync::watch;

use crate::ports::{Feed as _, Outcomes, Parking, StoreError, WaitingCalls as _};
use crate::run::control::{Interrupted, STORE_BOUND};
use crate::run::execution::Execution;
use crate::world::World;
use tarsy_core::ids::ExecutionId;

/// The outcome of an attempt to park the session. A session that is parked ends the run.
pub(super) enum Attempt {
    /// Another execution works, or has something to do.
    NotYet,
    /// The session has changed since the snapshot.
    Changed,
    /// The store gave no answer.
    Unknown,
}

impl<W: World> Execution<W> {
    /// Parks the session if nothing is decided in this snapshot and every open execution of the stage waits.
    pub(super) async fn park(
        &self,
        outcomes: &Outcomes,
        changes: &mut watch::Receiver<u64>,
    ) -> Result<Attempt, Interrupted> {
        let _turn = self.room.turn().await;
        if let Some(interrupted) = self.room.interrupted() {
            return Err(interrupted);
        }
        let Some(waiting) = self.room.all_waiting() else {
            return Ok(Attempt::NotYet);
        };
        for (execution, event) in waiting {
            match is_open(outcomes, execution, event) {
                Some(true) => {}
                // The request is younger than the snapshot.
                None => return Ok(Attempt::Changed),
                Some(false) => {
                    // Another execution has an end to commit, and may not have read of it.
                    self.room.notify();
                    changes.mark_unchanged();
                    return Ok(Attempt::NotYet);
                }
            }
        }
        let parked = self.ports.journal.park(self.lease, outcomes.event_seq);
        match self.control.within(STORE_BOUND, parked).await {
            Ok(Parking::Parked) => {
                self.room.interrupt(&Interrupted::Parked);
                let session = self.lease.session_id;
                self.ports
                    .feed
                    .notify_up_to(session, outcomes.event_seq.saturating_add(1));
                Err(Interrupted::Parked)
            }
            Ok(Parking::Changed) => Ok(Attempt::Changed),
            Err(StoreError::Unavailable(error) | StoreError::TimedOut(error)) => {
                tracing::warn!(session_id = %self.lease.session_id, "session not parked: {error}");
                Ok(Attempt::Unknown)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether a request waits in the snapshot; `None` if the snapshot does not have it.
fn is_open(outcomes: &Outcomes, execution: ExecutionId, event: u32) -> Option<bool> {
    let mut requests = outcomes.requests.iter();
    let request =
        requests.find(|request| request.execution_id == execution && request.event == event)?;
    Some(request.decided.is_none() && !request.left.is_zero())
}
