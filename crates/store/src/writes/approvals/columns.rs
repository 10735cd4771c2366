//! The requests that a checkpoint makes or closes, as its statement takes them.

use serde_json::{Value, json};

use tarsy_core::timeline::EventDraft;
use tarsy_engine::ports::{AskedApproval, ClosedApproval, StoreError};

use crate::rows::{nul, number};

/// The type of the event that asks for an approval.
const REQUESTED: &str = "approval_requested";

/// The requests as rows of `jsonb_to_recordset`, each with the number of its event within the checkpoint, from 1.
///
/// # Errors
/// [`StoreError::Conflict`] for a request without an event.
pub(crate) fn asked(asked: Vec<AskedApproval>, events: &[EventDraft]) -> Result<Value, StoreError> {
    let mut rows = Vec::with_capacity(asked.len());
    for request in asked {
        let event_no = event_of(events, &request.call_id).ok_or_else(|| {
            let call = &request.call_id;
            StoreError::Conflict(format!("no event asks for the approval of call {call}"))
        })?;
        rows.push(row(request, event_no));
    }
    Ok(Value::Array(rows))
}

fn event_of(events: &[EventDraft], call_id: &str) -> Option<u32> {
    let mut numbered = (1..).zip(events);
    let found = numbered.find(|(_, event)| {
        let call = event.metadata.get("call_id").and_then(Value::as_str);
        event.event_type.as_str() == REQUESTED && call == Some(call_id)
    });
    found.map(|(number, _)| number)
}

fn row(request: AskedApproval, event_no: u32) -> Value {
    let schema: String = request
        .schema_sha256
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    nul::replace_json(json!({
        "event_no": event_no,
        "call_id": request.call_id,
        "tool": request.tool,
        "policy": request.policy,
        "arguments": request.arguments,
        "call_sha256": request.call_sha256.to_string(),
        "schema_sha256": schema,
        "why": request.why,
        "evidence": request.evidence,
        "origins": request.origins,
        "quorum": request.quorum,
        "timeout": request.timeout.as_secs_f64(),
        "valid_for": request.valid_for.as_secs_f64(),
        "on_resolved": request.on_resolved.as_str(),
        "other_person": request.other_person,
        "channels": request.channels,
    }))
}

/// The requests that a checkpoint closes.
#[derive(Default)]
pub(crate) struct Closed {
    pub call_id: Vec<String>,
    pub outcome: Vec<&'static str>,
    /// The event numbers with which the session's is compared.
    pub seen: Vec<i32>,
}

impl Closed {
    pub(crate) fn new(closed: Vec<ClosedApproval>) -> Self {
        let mut all = Self::default();
        for request in closed {
            all.call_id.push(nul::replace(request.call_id));
            all.outcome.push(request.closed_as.as_str());
            all.seen.extend(request.seen.map(number::int));
        }
        all
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.call_id.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use tarsy_core::timeline::EventType;

    use super::*;

    #[test]
    fn the_event_of_a_request_is_the_one_that_asks_for_its_call() {
        let event = |word: &str, call: &str| {
            EventDraft::new(
                EventType::from(word.to_owned()),
                "",
                json!({"call_id": call}),
            )
        };
        let events = [
            event("llm_tool_call", "b"),
            event(REQUESTED, "a"),
            event(REQUESTED, "b"),
        ];
        assert_eq!(event_of(&events, "b"), Some(3));
        assert_eq!(event_of(&events, "a"), Some(2));
        assert_eq!(event_of(&events, "c"), None);
    }
}
