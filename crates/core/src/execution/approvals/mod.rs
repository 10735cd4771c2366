//! The approvals of an execution: which calls of an answer people are asked about, and what follows a decision.
//!
//! All calls of an answer that need a person are asked about in one checkpoint. Between an approval and the start of
//! its call lies nothing: both are entries of one checkpoint. Every other end gives the call a result. Results keep the
//! order of the calls, so the fact that a call behind a waiting one is not asked about precedes its result.

mod after_wait;
mod limits;
mod request;
mod words;

use std::collections::BTreeMap;

use super::entry::{
    ApprovalEnded, ApprovalOutcome, AskFault, Entry, NotSent, StopReason, ToolCall,
};
use super::results::{NOT_SENT_TIME_USED_UP, not_sent, unfit};
use super::state::{Approval, OpenCall, State};
use crate::approvals::is_readable;
use crate::plan::OnTimeout;

pub(super) use self::after_wait::after_wait;
pub use self::limits::{MAX_AGE, MAX_OF_ANSWER, MAX_OF_SESSION, RequestLimits};
pub use self::request::origins;
pub use self::words::{CHANGES_FROZEN, DENIED};

/// The entries that ask about every open call that needs a person, in one checkpoint. `faults` are those that only the
/// engine knows, by call id: such a call gets its fact, and its result once no call before it is without one. Without
/// any, these are the entries that [`decide`](super::decide::decide) returns.
pub fn asking(state: &State, faults: &BTreeMap<String, AskFault>) -> Vec<Entry> {
    let mut entries = Vec::new();
    // A call before has no result in this checkpoint.
    let mut is_behind = false;
    for open in state.open_calls().iter().take(state.calls_left()) {
        let call = &open.call;
        if open.approval != Approval::Needed || open.started || state.is_refused(&call.tool) {
            is_behind = true;
            continue;
        }
        let Some(ended) = not_askable(state, call, faults) else {
            is_behind = true;
            entries.extend(request::requested(state, call));
            continue;
        };
        let result = (!is_behind).then(|| result(state, call, &ended));
        entries.push(Entry::ApprovalEnded(Box::new(ended)));
        entries.extend(result);
    }
    entries
}

/// The end of a call without a request: a person has denied its tool, or could not judge it.
fn not_askable(
    state: &State,
    call: &ToolCall,
    faults: &BTreeMap<String, AskFault>,
) -> Option<ApprovalEnded> {
    if let Some(denied) = denied_before(state, call) {
        return Some(denied);
    }
    let fault = if state.is_masked(&call.id) {
        Some(AskFault::Secret)
    } else if !is_readable(&call.arguments) {
        Some(AskFault::Unreadable)
    } else if limits::is_beyond_answer(state, call) {
        Some(limits::beyond_answer())
    } else {
        faults.get(&call.id).cloned()
    };
    fault.map(|fault| ApprovalEnded::not_asked(&call.id, fault))
}

/// The end of a call whose tool a person has denied for the session.
fn denied_before(state: &State, call: &ToolCall) -> Option<ApprovalEnded> {
    let denied = state.denied_for_session(&call.tool)?;
    Some(ApprovalEnded {
        by: denied.by.clone(),
        ..ApprovalEnded::new(&call.id, ApprovalOutcome::DeniedSession)
    })
}

/// The entries for the end of a request, all of them for one checkpoint: the start of an approved call, which is sent
/// next, or the result of any other one. Empty for a call that is not open.
pub fn ended(state: &State, ended: &ApprovalEnded) -> Vec<Entry> {
    let Some(call) = state.open_call(&ended.call_id) else {
        return Vec::new();
    };
    let fact = Entry::ApprovalEnded(Box::new(ended.clone()));
    if ended.outcome == ApprovalOutcome::Approved {
        let call_id = call.id.clone();
        return vec![fact, Entry::Started { call_id }];
    }
    let stops = ended.outcome == ApprovalOutcome::Expired
        && concludes(state, call)
        && state.stopped().is_none();
    let stop = stops.then_some(Entry::Stopped {
        reason: StopReason::ApprovalExpired,
    });
    let result = result(state, call, ended);
    [Some(fact), Some(result), stop]
        .into_iter()
        .flatten()
        .collect()
}

/// Whether the policy of the call wants a conclusion after a request that expired.
fn concludes(state: &State, call: &ToolCall) -> bool {
    let rule = state
        .tool(&call.tool)
        .and_then(|tool| tool.approval.as_ref());
    rule.is_some_and(|rule| rule.on_timeout == OnTimeout::Conclude)
}

/// The next step for an open call whose tool was denied after it had been asked about; `None` for any other.
pub(super) fn denied_meanwhile(state: &State, call: &ToolCall) -> Option<Vec<Entry>> {
    denied_before(state, call).map(|denied| ended(state, &denied))
}

/// The result of a call that people keep from being sent.
pub(super) fn result(state: &State, call: &ToolCall, ended: &ApprovalEnded) -> Entry {
    let plan = state.plan();
    if let Some(AskFault::Unfit(faults)) = &ended.fault {
        return unfit(plan.strategy, call, faults.clone());
    }
    let why = if ended.outcome == ApprovalOutcome::Frozen {
        NotSent::Frozen
    } else {
        NotSent::NotApproved
    };
    let text = words::refusal(plan, call, ended);
    not_sent(plan.strategy, call, &text, why)
}

/// The result of a call that needs no approval and is not sent, because operators have frozen all changes.
pub fn frozen(state: &State, call: &ToolCall) -> Entry {
    not_sent(state.plan().strategy, call, CHANGES_FROZEN, NotSent::Frozen)
}

/// The entries of an open call for which no time is left.
pub(super) fn out_of_time(state: &State, open: &OpenCall) -> Vec<Entry> {
    let call = &open.call;
    let no_time = not_sent(
        state.plan().strategy,
        call,
        NOT_SENT_TIME_USED_UP,
        NotSent::NoTime,
    );
    match &open.approval {
        Approval::NotNeeded | Approval::Needed => vec![no_time],
        Approval::Asked { .. } => {
            let withdrawn = ApprovalEnded::new(&call.id, ApprovalOutcome::Withdrawn);
            vec![Entry::ApprovalEnded(Box::new(withdrawn)), no_time]
        }
        Approval::Refused(ended) => vec![result(state, call, ended)],
    }
}

#[cfg(test)]
mod tests;
