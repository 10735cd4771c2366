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
use crate::ports::{ClosedApproval, ClosedAs, Outcomes, StoreError, WaitingCalls as _};
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
        if let Entry::ApprovalEnded(ended) = entry
            && state.request_of(&ended.call_id).is_some()
        {
            closed.push(ClosedApproval {
                call_id: ended.call_id.clone(),
                closed_as: ClosedAs::Outcome(ended.outcome),
                // What people have decided is final; an end that no person made must not overwrite it.
                seen: if is_without_person(ended.outcome) {
                    seen
                } else {
                    None
                },
            });
        } else if let Entry::Lost { call_id } = entry
            && has_request_without_end(state, call_id)
        {
            // A request that stays open would hide the next one of its execution from a park and from votes.
            closed.push(ClosedApproval {
                call_id: call_id.clone(),
                closed_as: ClosedAs::Lost,
                seen: None,
            });
        }
    }
    closed
}

/// Whether the journal asks people about a call and has no end of it: a loss of commits took the end.
fn has_request_without_end(state: &State, call_id: &str) -> bool {
    let mut has_request = false;
    for entry in state.entries() {
        if let Entry::ApprovalRequested(requested) = entry {
            has_request |= requested.call_id == call_id;
        } else if let Entry::ApprovalEnded(ended) = entry
            && ended.call_id == call_id
        {
            return false;
        }
    }
    has_request
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ports::ClosedAs;
    use tarsy_core::approvals::CallHash;
    use tarsy_core::execution::decide::{Decision, decide};
    use tarsy_core::execution::entry::{Answer, ApprovalEnded, ApprovalRequested, SentCall};
    use tarsy_core::execution::recovery::identity;
    use tarsy_core::plan::Strategy;
    use tarsy_core::testing::{agent_plan, approved_tool};

    const TOOL: &str = "k8s.delete";

    /// The requests that the next checkpoint closes, when these entries follow a request about a call.
    fn closes(rest: Vec<Entry>) -> Vec<ClosedApproval> {
        let tool = approved_tool(TOOL);
        let plan = agent_plan(Strategy::NativeThinking, vec![tool.clone()]);
        let call = ToolCall {
            id: "a".to_owned(),
            tool: TOOL.to_owned(),
            arguments: "{}".to_owned(),
            read_only: false,
        };
        let requested = ApprovalRequested {
            call_id: call.id.clone(),
            policy: "default".to_owned(),
            call_sha256: CallHash::new(&tool, &call.arguments),
            why: String::new(),
            evidence: Vec::new(),
        };
        let mut state = State::replay(Arc::new(plan), None, Vec::<Entry>::new());
        let Decision::Append(opening) = decide(&state) else {
            panic!("the prompt comes first")
        };
        let asks = Entry::Answer(Answer {
            calls: vec![call],
            ..Answer::default()
        });
        let asked = [asks, Entry::ApprovalRequested(Box::new(requested))];
        for entry in opening.into_iter().chain(asked).chain(rest) {
            state.apply(entry);
        }
        let Decision::Append(lost) = decide(&state) else {
            panic!("the call was sent")
        };
        closed_by(&state, &lost, None)
    }

    #[test]
    fn a_call_that_was_sent_before_a_loss_of_commits_closes_its_request() {
        let sent = SentCall {
            tool: TOOL.to_owned(),
            identity: identity(TOOL, "{}"),
        };
        let loss = Entry::SentBefore {
            recovery: 1,
            calls: vec![sent],
        };
        let closed = ClosedApproval {
            call_id: "a".to_owned(),
            closed_as: ClosedAs::Lost,
            seen: None,
        };
        assert_eq!(closes(vec![loss]), [closed]);
        let approved = ApprovalEnded::new("a", ApprovalOutcome::Approved);
        let started = Entry::Started {
            call_id: "a".to_owned(),
        };
        assert_eq!(
            closes(vec![Entry::ApprovalEnded(Box::new(approved)), started]),
            [],
            "its request is closed"
        );
    }
}
