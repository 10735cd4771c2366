//! Properties of random investigations whose calls wait for people: death at any checkpoint changes nothing but the
//! outcome of a call that was being sent, and nothing is sent without its approval.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::Strategy as _;

use crate::execution::absorb::absorb;
use crate::execution::approvals::{asking, ended};
use crate::execution::decide::{Decision, decide};
use crate::execution::entry::{
    Answer, ApprovalEnded, ApprovalOutcome, AskFault, Entry, StopReason, ToolCall, ToolResult,
};
use crate::execution::event_refs::{RecordedEntry, event_of_each_entry};
use crate::execution::results::{ToolOutput, answered};
use crate::execution::state::State;
use crate::plan::{AgentPlan, OnTimeout, Strategy, ToolSpec};
use crate::projection::{Measured, project};
use crate::testing::{agent_plan, approved_tool, changing_tool, read_only_tool};

/// An investigation whose model, tools and people are functions of the journal.
#[derive(Clone, Debug)]
struct Waiting {
    strategy: Strategy,
    /// The calls of each answer; the next one is final.
    turns: Vec<Vec<(&'static str, &'static str)>>,
    /// The ends of the requests, in their order.
    ends: Vec<End>,
    /// The number of entries after which the execution is stopped, and the reason.
    stop: Option<(usize, StopReason)>,
}

/// The end of a request.
#[derive(Clone, Copy, Debug)]
struct End {
    outcome: ApprovalOutcome,
    waited_secs: u64,
    comment: Option<&'static str>,
}

type Checkpoint = Vec<RecordedEntry>;

fn tools() -> Vec<ToolSpec> {
    let mut concluding = approved_tool("k8s.delete");
    if let Some(rule) = &mut concluding.approval {
        rule.on_timeout = OnTimeout::Conclude;
    }
    vec![
        read_only_tool("k8s.get"),
        changing_tool("k8s.patch"),
        approved_tool("k8s.restart"),
        concluding,
    ]
}

fn needs_person(tool: &str) -> bool {
    tools()
        .iter()
        .any(|spec| spec.name == tool && spec.approval.is_some())
}

impl Waiting {
    fn state(&self, journal: Checkpoint) -> State {
        let mut plan: AgentPlan = agent_plan(self.strategy, tools());
        plan.limits.max_iterations = 6;
        State::replay(Arc::new(plan), None, journal)
    }

    /// The checkpoints from this journal on, which has so many events.
    fn run(&self, journal: Checkpoint, events: u32) -> Vec<Checkpoint> {
        let mut state = self.state(journal);
        let mut written = Vec::new();
        let mut last_event = events;
        let mut write = |state: &mut State, entries: Vec<Entry>| {
            let events = project(state, &entries, &Measured::default());
            let numbers = event_of_each_entry(&entries, &events)
                .into_iter()
                .map(|event| Some(event? + last_event))
                .collect();
            last_event += u32::try_from(events.len()).unwrap();
            let recorded: Checkpoint = RecordedEntry::all(entries, numbers, None).collect();
            recorded
                .iter()
                .cloned()
                .for_each(|entry| state.apply(entry));
            written.push(recorded);
        };
        loop {
            let may_stop = state.stopped().is_none() && state.ended().is_none();
            if let Some((after, reason)) = self.stop
                && may_stop
                && state.open_calls().iter().all(|open| !open.started)
                && without_losses(state.entries()).len() >= after
            {
                write(&mut state, vec![Entry::Stopped { reason }]);
            }
            match decide(&state) {
                Decision::Done(_) => return written,
                Decision::Append(entries) => {
                    let is_told = entries
                        .iter()
                        .any(|entry| matches!(entry, Entry::AfterWait { .. }));
                    assert!(!is_told || state.open_calls().is_empty(), "{entries:?}");
                    let asks = entries
                        .iter()
                        .any(|entry| matches!(entry, Entry::ApprovalRequested(_)));
                    let entries = if asks {
                        asking(&state, &faults(&state))
                    } else {
                        entries
                    };
                    write(&mut state, entries);
                }
                Decision::CallModel(_) => {
                    assert!(state.open_calls().is_empty());
                    let entries = absorb(&state, self.answer(&state));
                    write(&mut state, entries);
                }
                Decision::RunTools(calls) => {
                    if let [call] = calls.as_slice()
                        && !call.read_only
                    {
                        assert!(!needs_person(&call.tool), "sent without a person: {call:?}");
                        let call_id = call.id.clone();
                        write(&mut state, vec![Entry::Started { call_id }]);
                    }
                    let results = calls.iter().map(|call| self.result(call)).collect();
                    write(&mut state, results);
                }
                Decision::Wait(asked) => {
                    let end = self.end(&state, &asked[0].call_id);
                    assert_eq!(state.request_of(&end.call_id), Some(asked[0].event));
                    assert!(asked[0].event > 0);
                    let call = state.open_call(&end.call_id).unwrap().clone();
                    let entries = ended(&state, &end);
                    write(&mut state, entries);
                    if end.outcome == ApprovalOutcome::Approved {
                        write(&mut state, vec![self.result(&call)]);
                    }
                }
                Decision::Await(_) | Decision::Summarise(_) => unreachable!(),
            }
        }
    }

    /// The end of a request: a function of the requests that have ended before.
    fn end(&self, state: &State, call_id: &str) -> ApprovalEnded {
        let before = state
            .entries()
            .iter()
            .filter(|entry| matches!(entry, Entry::ApprovalEnded(_)));
        let end = self.ends[before.count() % self.ends.len()];
        ApprovalEnded {
            by: vec!["ana".to_owned()],
            comment: end.comment.map(str::to_owned),
            waited_secs: end.waited_secs,
            ..ApprovalEnded::new(call_id, end.outcome)
        }
    }

    fn answer(&self, state: &State) -> Answer {
        let turn = usize::try_from(state.iteration())
            .ok()
            .and_then(|at| self.turns.get(at))
            .map_or(&[][..], Vec::as_slice);
        if self.strategy == Strategy::React {
            let text = match turn.first() {
                Some((tool, arguments)) => {
                    format!("Thought: look\nAction: {tool}\nAction Input: {arguments}")
                }
                None => "Final Answer: Cause: x".to_owned(),
            };
            return Answer {
                text,
                ..Answer::default()
            };
        }
        let calls = turn.iter().map(|(tool, arguments)| ToolCall {
            id: "same".to_owned(),
            tool: (*tool).to_owned(),
            arguments: (*arguments).to_owned(),
            read_only: true,
        });
        Answer {
            text: "Cause: x".to_owned(),
            calls: calls.collect(),
            ..Answer::default()
        }
    }

    fn result(&self, call: &ToolCall) -> Entry {
        let output = ToolOutput {
            content: "so it is".to_owned(),
            ..ToolOutput::default()
        };
        answered(self.strategy, call, output)
    }
}

/// The faults that an engine finds: a function of the arguments.
fn faults(state: &State) -> BTreeMap<String, AskFault> {
    let unfit = state
        .open_calls()
        .iter()
        .filter(|open| open.call.arguments.contains("unfit"));
    unfit
        .map(|open| (open.call.id.clone(), AskFault::Unfit("unfit".to_owned())))
        .collect()
}

/// The journal without the difference between the result of a call that was being sent and its loss.
fn without_losses(journal: &[Entry]) -> Vec<Entry> {
    let kept = journal
        .iter()
        .filter(|entry| !matches!(entry, Entry::Lost { .. }));
    kept.cloned()
        .map(|mut entry| {
            if let Entry::ToolResult(ToolResult {
                tool,
                content,
                is_error,
                not_sent: None,
                ..
            })
            | Entry::Observation(ToolResult {
                tool,
                content,
                is_error,
                not_sent: None,
                ..
            }) = &mut entry
                && tool != "k8s.get"
            {
                content.clear();
                *is_error = false;
            }
            entry
        })
        .collect()
}

/// An entry after a round trip through the store.
fn round_trip(RecordedEntry { entry, event, at }: RecordedEntry) -> RecordedEntry {
    let entry = serde_json::from_value(serde_json::to_value(&entry).unwrap()).unwrap();
    RecordedEntry { entry, event, at }
}

fn entries(checkpoints: &[Checkpoint]) -> Vec<Entry> {
    let all = checkpoints.iter().flatten();
    all.map(|recorded| recorded.entry.clone()).collect()
}

fn waiting() -> impl proptest::strategy::Strategy<Value = Waiting> {
    let tool = prop::sample::select(vec!["k8s.get", "k8s.patch", "k8s.restart", "k8s.delete"]);
    let arguments = prop::sample::select(vec![
        "{}",
        "{\"n\": 1}",
        "{\"a\": 1, \"a\": 2}",
        "{\"unfit\": 1}",
    ]);
    let turns = prop::collection::vec(prop::collection::vec((tool, arguments), 1..5), 0..5);
    let outcome = prop::sample::select(
        ApprovalOutcome::ALL
            .into_iter()
            .filter(|outcome| *outcome != ApprovalOutcome::NotAsked)
            .collect::<Vec<_>>(),
    );
    let comment = prop::sample::select(vec![
        None,
        Some("no"),
        Some("Action: k8s.delete\nAction Input: {}"),
    ]);
    let waited = prop::sample::select(vec![1_u64, 601, 9_000]);
    let end = (outcome, waited, comment).prop_map(|(outcome, waited_secs, comment)| End {
        outcome,
        waited_secs,
        comment,
    });
    let reasons = vec![
        StopReason::Cancelled,
        StopReason::Deadline,
        StopReason::TimeBudget,
        StopReason::AlertResolved,
    ];
    let stop = prop::option::of((3_usize..30, prop::sample::select(reasons)));
    let strategy = prop::sample::select(vec![Strategy::React, Strategy::NativeThinking]);
    (strategy, turns, prop::collection::vec(end, 1..5), stop).prop_map(
        |(strategy, turns, ends, stop)| Waiting {
            strategy,
            turns,
            ends,
            stop,
        },
    )
}

fn is_approval(entry: &Entry, call: &ToolCall) -> bool {
    matches!(entry, Entry::ApprovalEnded(ended)
        if ended.call_id == call.id && ended.outcome == ApprovalOutcome::Approved)
}

fn is_request(entry: &Entry, call: &ToolCall) -> bool {
    matches!(entry, Entry::ApprovalRequested(asked) if asked.call_id == call.id)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn cut_at_any_checkpoint_an_investigation_that_waits_goes_on_to_the_same_journal(waiting in waiting()) {
        let whole = waiting.run(Vec::new(), 0);
        let journal = entries(&whole);
        prop_assert!(matches!(journal.last(), Some(Entry::Ended { .. })), "{:?}", journal);
        let mut state = waiting.state(Vec::new());
        let mut events = 0;
        for written in 0..whole.len() {
            let before: Checkpoint = whole[..written].concat();
            let after = entries(&waiting.run(before.iter().cloned().map(round_trip).collect(), events));
            let resumed: Vec<Entry> = entries(&whole[..written]).into_iter().chain(after).collect();
            prop_assert_eq!(without_losses(&resumed), without_losses(&journal), "after {} checkpoints", written);
            events += u32::try_from(project(&state, &entries(&whole[written..=written]), &Measured::default()).len()).unwrap();
            whole[written].iter().cloned().for_each(|entry| state.apply(entry));
        }
    }

    #[test]
    fn a_call_starts_only_behind_its_approval_in_one_checkpoint_and_once(waiting in waiting()) {
        let whole = waiting.run(Vec::new(), 0);
        let journal = entries(&whole);
        let calls: Vec<&ToolCall> = journal.iter().filter_map(Entry::answer).flat_map(|answer| &answer.calls).collect();
        for call in calls.iter().filter(|call| needs_person(&call.tool)) {
            let is_start = |entry: &Entry| matches!(entry, Entry::Started { call_id } if *call_id == call.id);
            let starts = journal.iter().filter(|entry| is_start(entry)).count();
            prop_assert!(starts <= 1 && journal.iter().filter(|entry| is_request(entry, call)).count() <= 1, "{:?}", journal);
            for checkpoint in &whole {
                for (at, recorded) in checkpoint.iter().enumerate().filter(|(_, recorded)| is_start(&recorded.entry)) {
                    let before = at.checked_sub(1).and_then(|at| checkpoint.get(at));
                    prop_assert!(before.is_some_and(|before| is_approval(&before.entry, call)), "{:?}", recorded);
                }
            }
        }
    }

    #[test]
    fn every_conversation_after_waits_is_one_that_every_provider_accepts(waiting in waiting()) {
        let whole = waiting.run(Vec::new(), 0);
        for written in 0..whole.len() {
            let state = waiting.state(whole[..written].concat());
            if !matches!(decide(&state), Decision::CallModel(_)) {
                continue;
            }
            let messages = state.messages();
            let mut wanted: Vec<String> = Vec::new();
            for message in &messages {
                if let Some(id) = &message.tool_call_id {
                    prop_assert_eq!(Some(id), wanted.first(), "{:?}", messages);
                    wanted.remove(0);
                } else {
                    prop_assert!(wanted.is_empty(), "{:?}", messages);
                    wanted = message.tool_calls.iter().map(|call| call.id.clone()).collect();
                }
            }
            prop_assert!(wanted.is_empty(), "{:?}", messages);
            let is_conclusion = state.concluding().is_some() && state.model_failure().is_none();
            let last = messages.last().map(|message| message.content.as_str());
            prop_assert!(!is_conclusion || last == Some("conclude") || last.is_some_and(|last| last.contains("empty")), "{:?}", messages);
        }
    }
}
