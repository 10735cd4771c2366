//! Guarantees 3 and 4: requests to models and tools, as the scripted services counted them.

use chrono::Duration;
use serde_json::Value;
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;
use uuid::Uuid;

use super::{Violation, add, lossy, resumes};
use crate::proofs::chaos::facts::{Entry, Event, Facts, ToolSent};
use crate::proofs::chaos::plan::Fault;

/// Tolerance around the time of a call on the timeline.
const MARGIN: Duration = Duration::seconds(2);

/// Counters of repeated calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::proofs::chaos) struct Repeated {
    pub(in crate::proofs::chaos) model_calls: u32,
    pub(in crate::proofs::chaos) model_repeats: u32,
    pub(in crate::proofs::chaos) read_only_calls: u32,
    pub(in crate::proofs::chaos) read_only_repeats: u32,
    pub(in crate::proofs::chaos) changing_calls: u32,
    pub(in crate::proofs::chaos) changing_repeats: u32,
    pub(in crate::proofs::chaos) lost: u32,
}

/// The figures of the report.
pub(in crate::proofs::chaos) fn repeated(facts: &Facts) -> Repeated {
    let mut repeated = Repeated::default();
    for count in facts.model_calls.values() {
        repeated.model_calls += count;
        repeated.model_repeats += count - 1;
    }
    for (sent, count) in &facts.tool_calls {
        if sent.changes_something() {
            repeated.changing_calls += count;
            repeated.changing_repeats += count - 1;
        } else {
            repeated.read_only_calls += count;
            repeated.read_only_repeats += count - 1;
        }
    }
    let lost = facts
        .entries
        .values()
        .flatten()
        .filter(|entry| entry.kind == "lost");
    repeated.lost = u32::try_from(lost.count()).unwrap_or(u32::MAX);
    repeated
}

/// A call of the journal with its execution and outcome.
pub(super) struct Journalled<'a> {
    pub(super) execution: Uuid,
    pub(super) session: SessionId,
    pub(super) id: &'a str,
    started: bool,
    lost: bool,
    answered: bool,
}

/// The call of the journal that a counted call belongs to.
pub(super) fn journalled<'a>(facts: &'a Facts, sent: &ToolSent) -> Option<Journalled<'a>> {
    let entries = facts.entries.get(&sent.execution)?;
    let answers = entries.iter().filter(|entry| entry.kind == "answer");
    let mut calls = answers
        .filter_map(|answer| answer.body["calls"].as_array())
        .flatten();
    let id = calls.find(|call| is_call(call, sent))?["id"].as_str()?;
    let has = |kinds: &[&str]| {
        let of = |entry: &&Entry| {
            entry.tool_call_id.as_deref() == Some(id) && kinds.contains(&entry.kind.as_str())
        };
        entries.iter().any(|entry| of(&entry))
    };
    let (started, lost, answered) = (
        has(&["started"]),
        has(&["lost"]),
        has(&["tool_result", "observation"]),
    );
    let session = SessionId(entries.first()?.session_id);
    Some(Journalled {
        execution: sent.execution,
        session,
        id,
        started,
        lost,
        answered,
    })
}

fn is_call(call: &Value, sent: &ToolSent) -> bool {
    let arguments = call["arguments"]
        .as_str()
        .and_then(|text| serde_json::from_str::<Value>(text).ok());
    let step = arguments.and_then(|arguments| arguments["step"].as_i64());
    let name = call["tool"].as_str().and_then(|tool| tool.split_once('.'));
    name.is_some_and(|(_, tool)| tool == sent.tool) && step == Some(sent.step)
}

pub(super) fn a_resume_repeats_only_calls_in_flight(
    facts: &Facts,
    violations: &mut Vec<Violation>,
) {
    for ((execution, iteration), count) in &facts.model_calls {
        let Some(session) = facts
            .entries
            .get(execution)
            .and_then(|entries| Some(entries.first()?.session_id))
        else {
            continue;
        };
        let events = facts.events_of(SessionId(session));
        // An update belongs to the iteration before. It may stand between a lost call and its repetition.
        let own = |event: &&Event| {
            event
                .event
                .execution_id
                .is_some_and(|id| id.0 == *execution)
                && event.event.event_type != EventType::AlertUpdated
        };
        let reached = |event: &&Event| event.event.iteration.unwrap_or(0).cast_signed();
        let before = events
            .iter()
            .filter(own)
            .filter(|event| reached(event) < *iteration);
        let after = events
            .iter()
            .filter(own)
            .find(|event| reached(event) >= *iteration);
        let (from, to) = (
            before.map(seq).max().unwrap_or(0),
            after.map_or(u32::MAX, seq),
        );
        let most = 1 + resumes(events, from, to) + cuts(facts, execution, *iteration);
        if *count > most {
            let what = format!(
                "execution {execution} asked {count} times for iteration {iteration}, at most {most} are due"
            );
            add(violations, 3, SessionId(session), what);
        }
    }
    for (sent, count) in facts
        .tool_calls
        .iter()
        .filter(|(sent, count)| !sent.changes_something() && **count > 1)
    {
        let Some(call) = journalled(facts, sent) else {
            continue;
        };
        let most = 1 + repeats_due(facts, &call);
        if *count > most {
            let ToolSent {
                execution,
                tool,
                step,
            } = sent;
            let what = format!(
                "execution {execution} sent {tool} (step {step}) {count} times, at most {most} are due"
            );
            add(violations, 3, call.session, what);
        }
    }
}

/// Calls of this iteration that were cut for another one: a soft deadline cuts a call, and the conclusion has its
/// number.
fn cuts(facts: &Facts, execution: &Uuid, iteration: i32) -> u32 {
    let entries = facts.entries.get(execution).into_iter().flatten();
    let cut = entries.filter(|entry| {
        entry.kind == "stopped"
            && entry.iteration + 1 == iteration
            && ["time_budget", "alert_resolved"]
                .map(Value::from)
                .contains(&entry.body["reason"])
    });
    u32::try_from(cut.count()).unwrap_or(u32::MAX)
}

/// Allowed repetitions: one for each takeover and each killed tool server while the call was open.
fn repeats_due(facts: &Facts, call: &Journalled<'_>) -> u32 {
    let events = facts.events_of(call.session);
    let of_call = |event: &&Event, kind: EventType| {
        event
            .event
            .execution_id
            .is_some_and(|id| id.0 == call.execution)
            && event.event.event_type == kind
            && event.event.metadata["call_id"] == call.id
    };
    let asked = events
        .iter()
        .find(|event| of_call(event, EventType::LlmToolCall));
    let shown = events
        .iter()
        .find(|event| of_call(event, EventType::ToolResult))
        .or_else(|| events.last());
    let due = resumes(events, asked.map_or(0, seq), shown.map_or(u32::MAX, seq));
    let (Some(asked), Some(shown)) = (asked, shown) else {
        return due;
    };
    let (from, until) = (
        asked.event.created_at - MARGIN,
        shown.event.created_at + MARGIN,
    );
    let died = facts.faults.iter().filter(|one| {
        matches!(one.fault, Fault::KillToolServer(_)) && one.from <= until && one.until >= from
    });
    due + u32::try_from(died.count()).unwrap_or(u32::MAX)
}

fn seq(event: &Event) -> u32 {
    event.event.session_seq
}

pub(super) fn changing_calls_are_sent_once(facts: &Facts, violations: &mut Vec<Violation>) {
    for (sent, count) in facts
        .tool_calls
        .iter()
        .filter(|(sent, _)| sent.changes_something())
    {
        let ToolSent {
            execution, step, ..
        } = sent;
        let Some(call) = journalled(facts, sent) else {
            let session = facts
                .entries
                .get(execution)
                .and_then(|entries| entries.first());
            let session = session.map(|entry| SessionId(entry.session_id));
            let touched = session.map_or_else(
                || lossy::fail_overs(facts).next().is_some(),
                |session| lossy::is_touched(facts, session),
            );
            let is_explained = !sent.is_guarded() || lossy::was_approved_somewhere(facts, sent);
            if touched && *count == 1 && is_explained {
                continue;
            }
            let what =
                format!("execution {execution} sent a call (step {step}) that no journal has");
            violations.push(Violation {
                guarantee: 4,
                session,
                what,
            });
            continue;
        };
        let touched = lossy::is_touched(facts, call.session);
        if *count > 1 && !lossy::was_unpublished(facts, call.session, call.id) {
            add(
                violations,
                4,
                call.session,
                format!(
                    "call {} of execution {execution} was sent {count} times",
                    call.id
                ),
            );
        }
        if !call.started && !touched {
            let what = format!(
                "call {} of execution {execution} was sent without being written down",
                call.id
            );
            add(violations, 4, call.session, what);
        }
        if call.lost && !call.answered {
            add(
                violations,
                4,
                call.session,
                format!(
                    "call {} of execution {execution} is lost without a word",
                    call.id
                ),
            );
        }
    }
}
