//! The calls that may have been sent, as the events of a session show them.

use std::collections::HashSet;

use super::{LostCall, identity};
use crate::execution::entry::SentCall;
use crate::timeline::{EventType, TimelineEvent};

/// The calls that may have been sent, from the events of lost steps and those that the store has kept.
///
/// A call that a person decides about was sent only after its approval, which has an event. So it counts if that event
/// says so, wherever it stands, and the store has no result of the call: its answer may be kept and its start lost. The
/// kept events are only needed for such calls.
pub fn sent(lost: &[TimelineEvent], kept: &[TimelineEvent]) -> Vec<LostCall> {
    let approved = Approved::new(kept.iter().chain(lost));
    let is_approved = |event: &&TimelineEvent| approved.has(event, kept.iter().chain(lost));
    let of_lost = lost
        .iter()
        .filter(|event| !needs_person(event) || is_approved(event));
    let of_kept = kept
        .iter()
        .filter(|event| needs_person(event) && is_approved(event) && !has_result(event, kept));
    of_kept.chain(of_lost).filter_map(of_event).collect()
}

/// Whether the result of a call is among these events.
fn has_result(call: &TimelineEvent, events: &[TimelineEvent]) -> bool {
    events.iter().any(|event| {
        event.event_type == EventType::ToolResult
            && event.execution_id == call.execution_id
            && text(event, "call_id") == text(call, "call_id")
    })
}

/// The calls that were approved: the requests with these numbers, and the ids of the calls. The restored events push
/// others behind them, so a decision may name the former number of its request; the id of the call stays.
#[derive(Default)]
struct Approved<'e> {
    requests: HashSet<u32>,
    ids: HashSet<&'e str>,
}

impl<'e> Approved<'e> {
    fn new(events: impl Iterator<Item = &'e TimelineEvent>) -> Self {
        let mut approved = Self::default();
        let decisions = events.filter(|event| {
            event.event_type == EventType::ApprovalDecided
                && text(event, "outcome") == Some(APPROVED)
        });
        for decision in decisions {
            approved.requests.extend(request_of(decision));
            approved.ids.extend(text(decision, "call_id"));
        }
        approved
    }

    /// Whether the request of a call, which is among `events`, was approved.
    fn has(
        &self,
        call: &TimelineEvent,
        mut events: impl Iterator<Item = &'e TimelineEvent>,
    ) -> bool {
        let Some(id) = text(call, "call_id") else {
            return false;
        };
        self.ids.contains(id)
            || events.any(|event| {
                event.event_type == EventType::ApprovalRequested
                    && event.execution_id == call.execution_id
                    && text(event, "call_id") == Some(id)
                    && self.requests.contains(&event.session_seq)
            })
    }
}

/// The word of [`ApprovalOutcome::Approved`](crate::execution::entry::ApprovalOutcome::Approved).
const APPROVED: &str = "approved";

/// The event that names the request of a decision: its number, alone or behind the session.
fn request_of(decision: &TimelineEvent) -> Option<u32> {
    let request = decision.metadata.get("request")?;
    match request.as_str() {
        Some(id) => id.rsplit('/').next()?.parse().ok(),
        None => u32::try_from(request.as_u64()?).ok(),
    }
}

/// Whether an event is a call that a person decides about.
fn needs_person(event: &TimelineEvent) -> bool {
    let approval = event.metadata.get("approval");
    event.event_type == EventType::LlmToolCall
        && approval.and_then(serde_json::Value::as_bool) == Some(true)
}

fn text<'e>(event: &'e TimelineEvent, key: &str) -> Option<&'e str> {
    event.metadata.get(key)?.as_str()
}

fn of_event(event: &TimelineEvent) -> Option<LostCall> {
    let read_only = event
        .metadata
        .get("read_only")
        .and_then(serde_json::Value::as_bool);
    if event.event_type != EventType::LlmToolCall || read_only == Some(true) {
        return None;
    }
    let tool = text(event, "tool_name")?.to_owned();
    let identity =
        text(event, "identity").map_or_else(|| identity(&tool, &event.content), ToOwned::to_owned);
    Some(LostCall {
        execution_id: event.execution_id?,
        call: SentCall { tool, identity },
    })
}
