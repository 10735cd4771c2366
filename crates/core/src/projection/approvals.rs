//! The events of requests for approvals: one when a call is asked about, one when it waits no longer.

use serde_json::json;

use crate::execution::entry::{ApprovalEnded, ApprovalOutcome, ApprovalRequested, AskFault};
use crate::execution::state::State;
use crate::plan::ApprovalRule;
use crate::readable::format;
use crate::timeline::{EventDraft, EventType};
use std::time::Duration;

/// The event of a request. Its number names the request.
pub(super) fn requested(state: &State, asked: &ApprovalRequested) -> EventDraft {
    let tool = tool_of(state, &asked.call_id);
    let rule = rule_of(state, &tool);
    let quorum = rule.map(|rule| rule.quorum);
    let time = rule.map_or_else(String::new, |rule: &ApprovalRule| {
        format!(", for at most {}", format::span(rule.timeout()))
    });
    let people = if quorum == Some(2) {
        "two people"
    } else {
        "a person"
    };
    let content = format!("{tool} waits for {people} (policy {}{time})", asked.policy);
    let metadata = json!({
        "tool_name": tool, "call_id": asked.call_id, "policy": asked.policy, "call_sha256": asked.call_sha256,
    });
    EventDraft::new(EventType::ApprovalRequested, content, metadata)
        .with("quorum", quorum)
        .with("timeout_ms", rule.map(|rule| rule.timeout_ms))
}

/// The event of the end of a request, or of a call that is not asked about.
pub(super) fn ended(state: &State, ended: &ApprovalEnded) -> EventDraft {
    let tool = tool_of(state, &ended.call_id);
    let content = format!("{tool}: {}", words(ended));
    let metadata = json!({
        "tool_name": tool, "call_id": ended.call_id, "outcome": ended.outcome.as_str(),
        "waited_secs": ended.waited_secs,
    });
    let by = (!ended.by.is_empty()).then(|| ended.by.clone());
    EventDraft::new(EventType::ApprovalEnded, content, metadata)
        .with("request", state.request_of(&ended.call_id))
        .with("by", by)
        .with("comment", ended.comment.as_deref())
}

/// The outcome, for people.
fn words(ended: &ApprovalEnded) -> String {
    let by = if ended.by.is_empty() {
        String::new()
    } else {
        format!(" by {}", ended.by.join(" and "))
    };
    let waited = if ended.waited_secs == 0 {
        String::new()
    } else {
        let waited = Duration::from_secs(ended.waited_secs);
        format!(" after {}", format::span(waited))
    };
    let outcome = match ended.outcome {
        ApprovalOutcome::Approved => "approved",
        ApprovalOutcome::Denied => "denied",
        ApprovalOutcome::DeniedSession => "denied for the whole investigation",
        ApprovalOutcome::Expired => "no decision in time",
        ApprovalOutcome::Withdrawn => "withdrawn",
        ApprovalOutcome::Lapsed => "not sent, the approval was too old",
        ApprovalOutcome::ToolChanged => "not sent, the tool has changed",
        ApprovalOutcome::Frozen => "not sent, all changes are frozen",
        ApprovalOutcome::NotAsked => {
            return format!("not asked about: {}", fault(ended.fault.as_ref()));
        }
    };
    format!("{outcome}{by}{waited}")
}

fn fault(fault: Option<&AskFault>) -> &str {
    match fault {
        Some(AskFault::Secret) => "its arguments hold a secret",
        Some(AskFault::Unfit(_)) => "its arguments do not fit the schema of the tool",
        Some(AskFault::TooMany(limit)) => limit,
        Some(AskFault::Unreadable) | None => "a person cannot read its arguments as the tool will",
    }
}

/// The full name of the tool of an open call.
fn tool_of(state: &State, call_id: &str) -> String {
    let call = state.open_call(call_id);
    call.map_or_else(|| "a call".to_owned(), |call| call.tool.clone())
}

fn rule_of<'s>(state: &'s State, tool: &str) -> Option<&'s ApprovalRule> {
    state.tool(tool)?.approval.as_ref()
}
