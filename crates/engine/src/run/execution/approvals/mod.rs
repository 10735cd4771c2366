//! Calls that wait for people: what is asked, the wait itself, and what follows its end.
//!
//! `ask` turns a request into the reason why it is not made, where only the engine knows it. `wait` reads the outcomes,
//! in memory while other executions of the stage work, and `park` gives up the lease when all of them wait, as `room`
//! knows. `close` commits the end of a request and sends a call that was approved. `freeze` guards every call that may
//! change something.

mod ask;
mod close;
mod freeze;
mod park;
mod room;
mod wait;

use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::Execution;
use crate::ports::{ClosedApproval, Outcomes, StoreError, WaitingCalls as _};
use crate::run::control::{Interrupted, ReleaseReason, STORE_BOUND};
use crate::world::World;
use tarsy_core::execution::entry::{ApprovalOutcome, Entry, ToolCall};
use tarsy_core::execution::state::State;
use tarsy_core::plan::{ApprovalRule, ToolSpec};

pub(super) use self::freeze::Freeze;
pub(in crate::run) use self::room::WaitingRoom;

/// The pause before the store or a server is asked again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The requests that these entries close.
pub(super) fn closed_by(
    state: &State,
    entries: &[Entry],
    seen: Option<u32>,
) -> Vec<ClosedApproval> {
    let mut closed = Vec::new();
    for entry in entries {
        let Entry::ApprovalEnded(ended) = entry else {
            continue;
        };
        if state.request_of(&ended.call_id).is_none() {
            continue;
        }
        closed.push(ClosedApproval {
            call_id: ended.call_id.clone(),
            outcome: ended.outcome,
            // What people have decided is final; an end that no person made must not overwrite it.
            seen: if is_without_person(ended.outcome) {
                seen
            } else {
                None
            },
        });
    }
    closed
}

fn is_without_person(outcome: ApprovalOutcome) -> bool {
    match outcome {
        ApprovalOutcome::Expired | ApprovalOutcome::Withdrawn => true,
        ApprovalOutcome::Approved
        | ApprovalOutcome::Denied
        | ApprovalOutcome::DeniedSession
        | ApprovalOutcome::Lapsed
        | ApprovalOutcome::ToolChanged
        | ApprovalOutcome::Frozen
        | ApprovalOutcome::NotAsked => false,
    }
}

/// A call that waits for a person, with its tool and the rule of its policy.
struct Judged {
    call: ToolCall,
    tool: ToolSpec,
    rule: ApprovalRule,
}

impl Judged {
    fn new(state: &State, call_id: &str) -> Result<Self, ReleaseReason> {
        Self::find(state, call_id).ok_or_else(|| {
            ReleaseReason::Incompatible(format!("call {call_id:?} needs no approval"))
        })
    }

    fn find(state: &State, call_id: &str) -> Option<Self> {
        let call = state.open_call(call_id)?;
        let tool = state.plan().tool(&call.tool)?;
        Some(Self {
            call: call.clone(),
            tool: tool.clone(),
            rule: tool.approval.clone()?,
        })
    }

    fn schema_sha256(&self) -> [u8; 32] {
        Sha256::digest(&self.tool.parameters_schema).into()
    }
}

impl<W: World> Execution<W> {
    /// The requests of the session in one snapshot. While the store is unavailable it is asked again. `None`: the run
    /// has to stop.
    async fn outcomes(&self) -> Result<Option<Outcomes>, Interrupted> {
        loop {
            let read = self.ports.journal.outcomes(self.lease.session_id);
            match self.control.within(STORE_BOUND, read).await {
                Ok(outcomes) => return Ok(Some(outcomes)),
                Err(StoreError::Unavailable(error) | StoreError::TimedOut(error)) => {
                    if !self.may_read_again(&error).await? {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits before the store is asked again. `false`: the run has to stop.
    async fn may_read_again(&self, error: &str) -> Result<bool, Interrupted> {
        tracing::warn!(session_id = %self.lease.session_id, execution_id = %self.id, "requests of the session not read: {error}");
        if self.control.pause(RETRY_DELAY).await?.is_none() {
            return Ok(false);
        }
        self.control.permit()?;
        Ok(true)
    }
}
