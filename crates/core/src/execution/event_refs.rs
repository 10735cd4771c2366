//! Event numbers of tool results: people see them next to each event, and an analysis cites them. Those of requests for
//! approvals name the requests.
//!
//! The store assigns the number of an event in the same statement that inserts the entry. So the number is stored
//! beside the entry, never inside of it, and so is the time.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::entry::Entry;
use crate::timeline::{EventDraft, EventType};

pub use super::cited_events::{Citation, CitedSource, citations, cited};

/// An entry of the journal, with the number of its event and its time.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedEntry {
    pub entry: Entry,
    /// `session_seq` of the event of this tool result or request; `None` for any other entry, and in old journals.
    pub event: Option<u32>,
    /// The time when its checkpoint was made, by the clock of its worker.
    pub at: Option<DateTime<Utc>>,
}

impl From<Entry> for RecordedEntry {
    fn from(entry: Entry) -> Self {
        Self {
            entry,
            event: None,
            at: None,
        }
    }
}

impl RecordedEntry {
    /// The entries of a checkpoint with their event numbers; entries after the end of `numbers` have none.
    pub fn all(
        entries: Vec<Entry>,
        numbers: Vec<Option<u32>>,
        at: Option<DateTime<Utc>>,
    ) -> impl Iterator<Item = Self> {
        let numbers = numbers.into_iter().chain(std::iter::repeat(None));
        entries
            .into_iter()
            .zip(numbers)
            .map(move |(entry, event)| Self { entry, event, at })
    }
}

/// The 1-based index of the event generated from each entry of a checkpoint. Only tool results and requests for
/// approvals have one: a result is cited by it, a request is named by it.
pub fn event_of_each_entry(entries: &[Entry], events: &[EventDraft]) -> Vec<Option<u32>> {
    let results = by_call(events, &EventType::ToolResult);
    let requests = by_call(events, &EventType::ApprovalRequested);
    entries
        .iter()
        .map(|entry: &Entry| {
            let of_type = if let Entry::ApprovalRequested(_) = entry {
                &requests
            } else {
                entry.result()?;
                &results
            };
            of_type.get(entry.call_id()?).copied()
        })
        .collect()
}

/// The 1-based indexes of the events of this type, by call.
fn by_call<'e>(events: &'e [EventDraft], event_type: &EventType) -> BTreeMap<&'e str, u32> {
    let of_type = (1_u32..)
        .zip(events)
        .filter(|(_, event)| event.event_type == *event_type);
    of_type
        .filter_map(|(number, event): (u32, &EventDraft)| {
            Some((event.metadata.get("call_id")?.as_str()?, number))
        })
        .collect()
}

/// The first line of a result, as the model sees it; `time` is what it states of the time.
pub fn heading(number: u32, time: &str) -> String {
    format!("[event {number}]{time}\n")
}

/// The event number in the heading that a text begins with.
pub fn event_in_heading(text: &str) -> Option<u32> {
    let (first, _) = text.split_once('\n')?;
    let (number, _) = first.strip_prefix("[event ")?.split_once(']')?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::approvals::CallHash;
    use crate::execution::entry::{Answer, ApprovalRequested, ToolCall, ToolResult};

    fn result(call_id: &str) -> Entry {
        Entry::ToolResult(ToolResult {
            call_id: call_id.into(),
            tool: "a.b".into(),
            content: String::new(),
            is_error: false,
            whole_bytes: 0,
            not_sent: None,
            facts: None,
            spent: None,
        })
    }

    #[test]
    fn a_result_belongs_to_the_result_event_of_its_call() {
        let event =
            |event_type, call: &str| EventDraft::new(event_type, "", json!({"call_id": call}));
        let call = ToolCall {
            id: "c".into(),
            tool: "a.b".into(),
            arguments: String::new(),
            read_only: true,
        };
        let entries = [
            Entry::Answer(Answer {
                calls: vec![call],
                ..Answer::default()
            }),
            result("d"),
            result("c"),
            result("x"),
        ];
        let events = [
            event(EventType::LlmToolCall, "c"),
            event(EventType::ToolResult, "c"),
            EventDraft::new(EventType::Error, "", json!(null)),
            event(EventType::ToolResult, "d"),
        ];
        assert_eq!(
            event_of_each_entry(&entries, &events),
            [None, Some(4), Some(2), None]
        );
    }

    #[test]
    fn a_request_has_the_event_that_names_it() {
        let asked = |call: &str| {
            let tool = crate::testing::approved_tool("a.b");
            Entry::ApprovalRequested(Box::new(ApprovalRequested {
                call_id: call.into(),
                policy: "default".into(),
                call_sha256: CallHash::new(&tool, "{}"),
                why: String::new(),
                evidence: Vec::new(),
            }))
        };
        let event =
            |event_type, call: &str| EventDraft::new(event_type, "", json!({"call_id": call}));
        let entries = [asked("d"), asked("c"), result("c")];
        let events = [
            event(EventType::ApprovalRequested, "d"),
            event(EventType::ToolResult, "c"),
            event(EventType::ApprovalRequested, "c"),
        ];
        assert_eq!(
            event_of_each_entry(&entries, &events),
            [Some(1), Some(3), Some(2)]
        );
    }

    #[test]
    fn entries_without_a_number_are_kept() {
        let all: Vec<_> =
            RecordedEntry::all(vec![result("a"), result("b")], vec![Some(3)], None).collect();
        assert_eq!(
            all,
            [
                RecordedEntry {
                    entry: result("a"),
                    event: Some(3),
                    at: None
                },
                result("b").into()
            ]
        );
    }

    #[test]
    fn a_heading_is_read_back_and_only_at_the_beginning() {
        for time in ["", " 03:32:31", " 03:32:31, 4 turns left"] {
            assert_eq!(
                event_in_heading(&format!("{}12 pods", heading(7, time))),
                Some(7)
            );
        }
        assert_eq!(event_in_heading("12 pods\n[event 7]\n"), None);
    }
}
