//! Recovery after a loss of commits in the database: remembers the calls of the lost steps that may have been sent.
//!
//! The journal is back at an earlier entry, and the model will probably request the same calls again. They are
//! recognised by their identity and not sent a second time.

mod sent;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::entry::{Entry, SentCall, ToolCall};
use super::state::State;
use crate::ids::ExecutionId;

pub use self::sent::sent;
pub use super::repeats::identity;

/// A loss of commits, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// The number of the loss, from 1, in order.
    pub number: u32,
    /// Calls of the lost steps that may have changed something.
    pub calls: Vec<LostCall>,
}

/// A [`SentCall`] and the execution that sent it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostCall {
    pub execution_id: ExecutionId,
    #[serde(flatten)]
    pub call: SentCall,
}

impl SentCall {
    fn new(call: &ToolCall) -> Self {
        Self {
            tool: call.tool.clone(),
            identity: identity(&call.tool, &call.arguments),
        }
    }
}

/// The calls of a journal that may have changed something and were sent.
pub fn sent_by(state: &State) -> Vec<SentCall> {
    let asked = state
        .entries()
        .iter()
        .filter_map(Entry::answer)
        .flat_map(|answer| &answer.calls);
    asked.filter(|call: &&ToolCall| {
        !call.read_only && state.entries().iter().any(|entry: &Entry| matches!(entry, Entry::Started { call_id } if *call_id == call.id))
    }).map(SentCall::new).collect()
}

/// The entries that a resumed execution appends for losses that are not in its journal: the calls that must not be sent
/// again, and feedback to the model where a message is allowed.
pub fn owed(state: &State, execution: ExecutionId, recoveries: &[Recovery]) -> Vec<Entry> {
    let unknown: Vec<&Recovery> = recoveries
        .iter()
        .filter(|recovery| recovery.number > state.recovery)
        .collect();
    let Some(last) = unknown.last() else {
        return Vec::new();
    };
    let of_this = unknown
        .iter()
        .flat_map(|recovery| &recovery.calls)
        .filter(|lost| lost.execution_id == execution);
    let mut kept = sent_by(state);
    let mut calls: Vec<SentCall> = Vec::new();
    for lost in of_this {
        match kept.iter().position(|known| *known == lost.call) {
            // Its start was committed, so the journal has its outcome.
            Some(at) => drop(kept.swap_remove(at)),
            None if calls.contains(&lost.call) => {}
            None => calls.push(lost.call.clone()),
        }
    }
    if calls.is_empty() && state.entries().is_empty() {
        return Vec::new();
    }
    let plan = state.plan();
    let mut tools: Vec<Cow<'_, str>> = calls.iter().map(|call| plan.shown(&call.tool)).collect();
    tools.dedup();
    let feedback = (!calls.is_empty() && state.open_calls().is_empty()).then(|| {
        Entry::feedback(format!(
            "The record of the last steps of this investigation was lost, and they are taken again. Calls of these tools \
             had been sent and may have changed something: {}. Their outcome is unknown, and the same call is not sent \
             again. Check the present state before you decide what to do.",
            tools.join(", ")
        ))
    });
    let fact = Entry::SentBefore {
        recovery: last.number,
        calls,
    };
    [Some(fact), feedback].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::execution::decide::{Decision, decide};
    use crate::execution::entry::{Answer, ToolResult};
    use crate::ids::SessionId;
    use crate::plan::Strategy;
    use crate::testing::{agent_plan, approved_tool, changing_tool, read_only_tool};
    use crate::timeline::{EventStatus, EventType, TimelineEvent};

    const EXECUTION: ExecutionId = ExecutionId(Uuid::nil());

    fn restart(id: &str, arguments: &str) -> ToolCall {
        ToolCall {
            id: id.into(),
            tool: "k8s.restart".into(),
            arguments: arguments.into(),
            read_only: false,
        }
    }

    fn state(entries: Vec<Entry>) -> State {
        let plan = agent_plan(
            Strategy::NativeThinking,
            vec![read_only_tool("k8s.get"), changing_tool("k8s.restart")],
        );
        let mut state = State::replay(Arc::new(plan), None, Vec::<Entry>::new());
        let Decision::Append(opening) = decide(&state) else {
            panic!()
        };
        opening
            .into_iter()
            .chain(entries)
            .for_each(|entry| state.apply(entry));
        state
    }

    fn asks(calls: &[ToolCall]) -> Entry {
        Entry::Answer(Answer {
            calls: calls.to_vec(),
            ..Answer::default()
        })
    }

    fn loss(number: u32, calls: &[ToolCall]) -> Recovery {
        Recovery {
            number,
            calls: calls
                .iter()
                .map(|call: &ToolCall| LostCall {
                    execution_id: EXECUTION,
                    call: SentCall::new(call),
                })
                .collect(),
        }
    }

    #[test]
    fn a_call_of_a_lost_step_is_lost_once_and_a_later_one_is_a_new_call() {
        let mut state = state(vec![]);
        let owed = owed(
            &state,
            EXECUTION,
            &[loss(1, &[restart("a", r#"{"n":1,"m":2}"#)])],
        );
        assert!(
            matches!(owed.as_slice(), [Entry::SentBefore { recovery: 1, .. }, Entry::Feedback { content, about: None }]
            if content.contains("k8s.restart"))
        );
        owed.into_iter().for_each(|entry| state.apply(entry));
        for (id, runs) in [("b", false), ("c", true)] {
            state.apply(asks(&[restart(id, r#"{"m": 2, "n": 1}"#)]));
            match decide(&state) {
                Decision::RunTools(calls) => assert!(runs, "{calls:?}"),
                Decision::Append(entries) => {
                    assert!(
                        !runs && matches!(&entries[0], Entry::Lost { call_id } if call_id == "b"),
                        "{entries:?}"
                    );
                    entries.into_iter().for_each(|entry| state.apply(entry));
                }
                Decision::CallModel(_)
                | Decision::Await(_)
                | Decision::Wait(_)
                | Decision::Summarise(_)
                | Decision::Done(_) => {
                    panic!("the call is open")
                }
            }
        }
    }

    #[test]
    fn another_call_of_the_tool_is_sent() {
        let mut state = state(vec![]);
        let owed = owed(&state, EXECUTION, &[loss(1, &[restart("a", "{\"n\":1}")])]);
        owed.into_iter().for_each(|entry| state.apply(entry));
        state.apply(asks(&[restart("b", "{\"n\":2}")]));
        assert!(matches!(decide(&state), Decision::RunTools(_)));
    }

    #[test]
    fn an_open_call_counts_as_sent_after_a_loss() {
        let mut state = state(vec![asks(&[restart("a", "{}")])]);
        let owed = owed(&state, EXECUTION, &[loss(1, &[])]);
        assert_eq!(
            owed,
            [Entry::SentBefore {
                recovery: 1,
                calls: vec![]
            }]
        );
        owed.into_iter().for_each(|entry| state.apply(entry));
        let Decision::Append(entries) = decide(&state) else {
            panic!("the call is sent")
        };
        assert_eq!(
            entries[0],
            Entry::Lost {
                call_id: "a".into()
            }
        );
    }

    #[test]
    fn a_loss_is_recorded_once_without_the_calls_that_the_journal_has() {
        let call = restart("a", "{}");
        let mut state = state(vec![
            asks(std::slice::from_ref(&call)),
            Entry::Started {
                call_id: "a".into(),
            },
            Entry::ToolResult(ToolResult {
                call_id: "a".into(),
                tool: call.tool.clone(),
                content: "ok".into(),
                is_error: false,
                whole_bytes: 0,
                not_sent: None,
                facts: None,
                spent: None,
            }),
        ]);
        let losses = [loss(1, std::slice::from_ref(&call))];
        let first = owed(&state, EXECUTION, &losses);
        assert_eq!(
            first,
            [Entry::SentBefore {
                recovery: 1,
                calls: vec![]
            }]
        );
        first.into_iter().for_each(|entry| state.apply(entry));
        assert_eq!(owed(&state, EXECUTION, &losses), []);
        let other = ExecutionId(Uuid::from_u128(1));
        assert_eq!(
            owed(&self::state(vec![]), other, &losses).len(),
            1,
            "a call of another execution is none of this one"
        );
    }

    fn event(metadata: serde_json::Value, content: &str) -> TimelineEvent {
        TimelineEvent {
            session_id: SessionId(Uuid::nil()),
            session_seq: 4,
            execution_id: Some(EXECUTION),
            sequence_number: Some(1),
            stage: None,
            agent: None,
            iteration: Some(1),
            attempt: Some(1),
            event_type: EventType::LlmToolCall,
            status: EventStatus::Completed,
            content: content.into(),
            metadata,
            created_at: chrono::DateTime::UNIX_EPOCH,
            truncated: false,
        }
    }

    /// The events of a call that needs a person: the call, the request under this number, and the decision.
    fn decided(call: &str, number: u32, outcome: &str) -> [TimelineEvent; 3] {
        let asks = event(
            json!({"tool_name": "k8s.delete", "call_id": call, "read_only": false, "approval": true}),
            "{}",
        );
        let request = TimelineEvent {
            session_seq: number,
            event_type: EventType::ApprovalRequested,
            ..event(json!({"call_id": call}), "")
        };
        let decision = TimelineEvent {
            session_seq: number + 1,
            execution_id: None,
            event_type: EventType::ApprovalDecided,
            ..event(json!({"request": number, "outcome": outcome}), "")
        };
        [asks, request, decision]
    }

    #[test]
    fn a_call_that_needs_a_person_counts_as_sent_only_after_its_recorded_approval() {
        let approved = decided("a", 7, "approved");
        let denied = decided("b", 17, "denied");
        let [call, request, decision] = approved.clone();
        let known = loss(
            1,
            &[ToolCall {
                tool: "k8s.delete".into(),
                ..restart("a", "{}")
            }],
        )
        .calls;
        assert_eq!(sent(&approved, &denied), known);
        assert_eq!(sent(&denied, &[]), []);
        assert_eq!(sent(&[call.clone(), request.clone()], &[]), []);
        // The answer and the request are kept; the approval and the start were lost.
        let kept = [call.clone(), request.clone()];
        assert_eq!(sent(std::slice::from_ref(&decision), &kept), known);
        assert_eq!(sent(&[], &approved), known);
        let result = TimelineEvent {
            event_type: EventType::ToolResult,
            ..event(json!({"call_id": "a"}), "")
        };
        assert_eq!(sent(&[], &[call, request, decision.clone(), result]), []);
        let named = TimelineEvent {
            metadata: json!({"request": "00000000-0000-0000-0000-000000000000/7", "outcome": "approved"}),
            ..decision
        };
        assert_eq!(sent(std::slice::from_ref(&named), &kept), known);
        // The request has another number since; its call is the same.
        let moved = TimelineEvent {
            metadata: json!({"request": 3, "call_id": "a", "outcome": "approved"}),
            ..named
        };
        assert_eq!(sent(&[moved], &kept), known);
    }

    #[test]
    fn after_a_loss_an_approved_call_is_lost_and_any_other_is_asked_about_again() {
        let delete = |id: &str| ToolCall {
            tool: "k8s.delete".into(),
            ..restart(id, "{}")
        };
        for (was_approved, is_lost) in [(true, true), (false, false)] {
            let plan = agent_plan(Strategy::NativeThinking, vec![approved_tool("k8s.delete")]);
            let mut state = State::replay(Arc::new(plan), None, Vec::<Entry>::new());
            let Decision::Append(opening) = decide(&state) else {
                panic!()
            };
            opening.into_iter().for_each(|entry| state.apply(entry));
            state.apply(asks(&[delete("a")]));
            let calls = if was_approved {
                vec![delete("a")]
            } else {
                vec![]
            };
            let owed = owed(&state, EXECUTION, &[loss(1, &calls)]);
            owed.into_iter().for_each(|entry| state.apply(entry));
            let Decision::Append(entries) = decide(&state) else {
                panic!()
            };
            let lost = matches!(
                entries.as_slice(),
                [Entry::Lost { .. }, Entry::ToolResult(_)]
            );
            assert_eq!(lost, is_lost, "{entries:?}");
            entries.into_iter().for_each(|entry| state.apply(entry));
            // Each such call matches once.
            if is_lost {
                state.apply(asks(&[delete("b")]));
                assert!(
                    matches!(decide(&state), Decision::Append(entries) if matches!(entries[0], Entry::ApprovalRequested(_)))
                );
            }
        }
    }

    #[test]
    fn calls_are_known_from_their_events_also_when_arguments_are_masked() {
        let call = restart("a", "{\"token\":\"t\"}");
        let events = [
            event(json!({"tool_name": "k8s.get", "read_only": true}), "{}"),
            event(
                json!({"tool_name": "k8s.restart", "read_only": false, "identity": identity(&call.tool, &call.arguments)}),
                "[masked]",
            ),
            event(
                json!({"tool_name": "k8s.restart", "read_only": false}),
                "{ \"token\": \"t\" }",
            ),
        ];
        let known = loss(1, &[call.clone(), call]).calls;
        assert_eq!(sent(&events, &[]), known);
    }
}
