//! The request of a call: what people see of it.

use serde_json::Value;

use crate::approvals::{CallHash, Origins, SearchedText};
use crate::execution::entry::{ApprovalRequested, Entry, Role, ToolCall};
use crate::execution::event_refs::cited;
use crate::execution::state::State;

/// Characters of the text of the answer that people see.
const MAX_WHY: usize = 2_000;
/// Events that the answer may cite.
const MAX_EVIDENCE: usize = 50;

/// The entry that asks about a call; `None` for one that needs no person.
pub(super) fn requested(state: &State, call: &ToolCall) -> Option<Entry> {
    let tool = state.tool(&call.tool)?;
    let rule = tool.approval.as_ref()?;
    let text = state.last_answer().map(|answer| answer.text.trim());
    let text = text.unwrap_or_default();
    Some(Entry::ApprovalRequested(Box::new(ApprovalRequested {
        call_id: call.id.clone(),
        policy: rule.policy.clone(),
        call_sha256: CallHash::new(tool, &call.arguments),
        why: text.chars().take(MAX_WHY).collect(),
        evidence: evidence(state, text),
    })))
}

/// The results that a text cites.
fn evidence(state: &State, text: &str) -> Vec<u32> {
    let known = state.citable().unwrap_or_default();
    let known = cited(text)
        .into_iter()
        .filter(|event| known.contains(&u64::from(*event)));
    known.take(MAX_EVIDENCE).collect()
}

/// The places where each value of a call's arguments occurs: the results with their events, and the text that opened
/// the investigation, with the alert and its updates.
pub fn origins(state: &State, call: &ToolCall) -> Value {
    let texts = state.entries().iter().zip(state.event_of_entries());
    let texts = texts.filter_map(|(entry, event): (&Entry, Option<u32>)| {
        if let Some(result) = entry.result() {
            return (result.not_sent.is_none()).then_some(SearchedText::Result {
                event: event?,
                text: &result.content,
            });
        }
        match entry {
            Entry::Prompt {
                role: Role::User,
                content,
            } => Some(SearchedText::Alert(content)),
            Entry::AlertUpdated(updated) => Some(SearchedText::Alert(&updated.content)),
            Entry::Prompt { .. }
            | Entry::Answer(_)
            | Entry::ToolResult(_)
            | Entry::Observation(_)
            | Entry::Feedback { .. }
            | Entry::Failed { .. }
            | Entry::Started { .. }
            | Entry::Lost { .. }
            | Entry::SentBefore { .. }
            | Entry::Dispatched(_)
            | Entry::ApprovalRequested(_)
            | Entry::ApprovalEnded(_)
            | Entry::AfterWait { .. }
            | Entry::Switched { .. }
            | Entry::Concluding { .. }
            | Entry::Elided { .. }
            | Entry::Summarised(_)
            | Entry::Stopped { .. }
            | Entry::Ended { .. } => None,
        }
    });
    Origins::of_arguments(&call.arguments, texts).to_value()
}
