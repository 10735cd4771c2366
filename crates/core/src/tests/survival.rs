//! Tests of random investigations: a replay from any checkpoint leads to the same journal, and every one ends.

use proptest::prelude::*;
use proptest::strategy::Strategy as _;

use crate::execution::entry::{
    About, Answer, Entry, FailureSource, Finish, Outcome, Role, StopReason, ToolResult,
};
use crate::execution::event_refs::RecordedEntry;
use crate::native::{CodePart, Grounding, Source};
use crate::plan::{AnswerCheck, Limits, Strategy};
use crate::testing::{Room, Simulation, Turn, Written, without_losses};
use crate::timeline::{EventDraft, EventType};

/// The entries after a round trip through the store.
pub(super) fn stored(written: &[Written]) -> Vec<RecordedEntry> {
    written
        .iter()
        .flat_map(Written::recorded)
        .map(|RecordedEntry { entry, event, at }| {
            let entry = serde_json::from_value(serde_json::to_value(&entry).unwrap()).unwrap();
            RecordedEntry { entry, event, at }
        })
        .collect()
}

fn with_native_parts(answer: Answer) -> Answer {
    let code = |code: &str, result: &str| CodePart {
        code: code.to_owned(),
        result: result.to_owned(),
        ..CodePart::default()
    };
    let source = Source {
        uri: "https://example.com".to_owned(),
        title: "Example".to_owned(),
    };
    let grounding = Grounding {
        queries: vec!["disk".to_owned()],
        sources: vec![source],
        ..Grounding::default()
    };
    Answer {
        code_executions: vec![code("print(1)", ""), code("", "1")],
        groundings: vec![grounding],
        ..answer
    }
}

fn says() -> impl proptest::strategy::Strategy<Value = Turn> {
    let text = prop_oneof![
        Just(""),
        Just("Thought: look\nAction: k8s.get\nAction Input: {\"a\": 1.0}"),
        Just("Thought: look again\nAction: k8s.get\nAction Input: a: 1.0"),
        Just("Thought: look\nAction: k8s.silent\nAction Input: a: b\n- left out"),
        Just("Thought: do\nAction: k8s.restart\nAction Input:"),
        Just("Action: k8s.patch_silent\nAction Input: {}"),
        Just("Action: no.such\nAction Input: {}"),
        Just("Action: k8s.get\nAction Input: {}\nAction: k8s__get\nAction Input: {\"a\": 2}"),
        Just("Action: k8s.get\nAction Input: {}\nAction: k8s.restart\nAction Input: {}"),
        Just("Thought: and now"),
        Just("I do not know."),
        Just("Thought: enough\nFinal Answer: Cause: y"),
        Just("\u{200b}"),
        Just("<tool_call>{\"name\": \"k8s__get\", \"arguments\": {}}</tool_call>"),
        Just("Cause: y\n<tool_call>\n<function=k8s__get>"),
        Just("I scale it.\n<function=k8s__scale>{\"to\": 2}</function>"),
    ];
    let cut = prop::sample::select(Finish::ALL.to_vec());
    let finish = prop_oneof![3 => Just(Finish::Stop), 1 => cut];
    let names = [
        "k8s.get",
        "k8s.silent",
        "k8s.restart",
        "k8s.patch_silent",
        "no.such",
    ];
    let tools = prop::collection::vec(prop::sample::select(names.to_vec()), 0..4);
    let thinking = prop_oneof![Just(""), Just("hm")];
    (text, thinking, tools, finish, any::<bool>()).prop_map(
        |(text, thinking, tools, finish, parts)| {
            let Turn::Says(answer) = Turn::says(text, thinking, &tools) else {
                unreachable!()
            };
            let answer = Answer { finish, ..*answer };
            Turn::Says(Box::new(if parts {
                with_native_parts(answer)
            } else {
                answer
            }))
        },
    )
}

/// One kind of turn, up to five times in a row.
fn turns() -> impl proptest::strategy::Strategy<Value = Vec<Turn>> {
    let codes = [
        "max_retries",
        "partial_stream_error",
        "credentials",
        "context_window_exceeded",
    ];
    let fails =
        (prop::sample::select(codes.to_vec()), any::<bool>()).prop_map(|(code, timeout)| {
            Turn::Fails {
                code,
                timeout: timeout && !matches!(code, "credentials" | "context_window_exceeded"),
            }
        });
    let turn = prop_oneof![4 => says(), 1 => Just(Turn::says("", "", &[])), 1 => fails];
    (turn, 1_usize..6).prop_map(|(turn, times)| vec![turn; times])
}

/// Often too small, and not always the size in the plan.
fn room() -> impl proptest::strategy::Strategy<Value = Room> {
    let some = (
        prop_oneof![Just(0_u64), 10_u64..400],
        prop_oneof![Just(usize::MAX), 10_usize..3000],
        8_usize..800,
    )
        .prop_map(|(context_window, takes_bytes, result_bytes)| Room {
            context_window,
            takes_bytes,
            result_bytes,
        });
    prop_oneof![1 => Just(Room::ENOUGH), 2 => some]
}

prop_compose! {
    pub(super) fn simulation()(
        strategy in prop::sample::select(Strategy::ALL.to_vec()),
        (max_iterations, max_tokens) in (1_u32..8, prop_oneof![Just(0_u64), 1_u64..60]),
        turns in prop::collection::vec(turns(), 0..4),
        (fallbacks, context) in (0_u32..3, prop::option::of(Just("found before".to_owned()))),
        stop in prop::option::of((2_usize..20, prop::sample::select(vec![StopReason::Cancelled, StopReason::Deadline, StopReason::Budget]))),
        (room, summarises, is_checked) in (room(), any::<bool>(), any::<bool>()),
        (has_pauses, keeps_tools) in (any::<bool>(), any::<bool>()),
    ) -> Simulation {
        let limits = Limits { max_iterations, max_tokens, ..Limits::default() };
        let answer_check = if is_checked { AnswerCheck::Once } else { AnswerCheck::Off };
        let turns = turns.concat();
        Simulation {
            strategy, limits, turns, fallbacks, context, stop, room, summarises, answer_check, has_pauses, keeps_tools,
        }
    }
}

fn entries(written: &[Written]) -> Vec<Entry> {
    written
        .iter()
        .flat_map(|written| written.entries.clone())
        .collect()
}

/// The maximum of model calls: one more after an empty answer, one after a cut one, and one after a conclusion that was
/// too long; for each provider.
fn max_calls(simulation: &Simulation) -> usize {
    let iterations = usize::try_from(simulation.limits.max_iterations).unwrap();
    let providers = usize::try_from(simulation.fallbacks).unwrap() + 1;
    match simulation.strategy {
        Strategy::React | Strategy::NativeThinking => iterations + 4 * providers,
        Strategy::Synthesis | Strategy::SynthesisNativeThinking => 4 * providers,
        Strategy::SingleCall => 3 * providers,
    }
}

fn call_ids(events: &[&EventDraft], event_type: &EventType) -> Vec<String> {
    let of_type = events
        .iter()
        .filter(|event| event.event_type == *event_type);
    let mut ids: Vec<String> = of_type
        .map(|event| event.metadata["call_id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    ids
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn cut_at_any_checkpoint_every_strategy_goes_on_to_the_same_journal(simulation in simulation()) {
        let whole = simulation.run(Vec::new());
        let journal = entries(&whole);
        prop_assert!(matches!(journal.last(), Some(Entry::Ended { .. })), "{:?}", journal);
        for written in 0..whole.len() {
            let before = stored(&whole[..written]);
            let events = whole[..written].iter().map(|written| written.events.len()).sum();
            let after = entries(&simulation.go_on(before.clone(), events));
            let resumed: Vec<Entry> = before.into_iter().map(|recorded| recorded.entry).chain(after).collect();
            // The text of a lost call is shorter or longer than its result, so the window fills differently.
            let is_cut_in_a_call = matches!(resumed.get(entries(&whole[..written]).len()), Some(Entry::Lost { .. }));
            // A lost call has no text to summarise.
            let has_other_texts = simulation.room.is_little() || simulation.summarises;
            let has_full_window = simulation.turns.iter().any(|turn: &Turn| match turn {
                Turn::Fails { code, .. } => *code == "context_window_exceeded",
                Turn::Says(answer) => answer.finish == Finish::ContextWindow,
            });
            if is_cut_in_a_call && (has_other_texts || has_full_window) {
                prop_assert!(matches!(resumed.last(), Some(Entry::Ended { .. })), "{:?}", resumed);
            } else {
                prop_assert_eq!(without_losses(&resumed), without_losses(&journal), "after {} checkpoints", written);
            }
        }
    }

    #[test]
    fn an_answer_is_asked_for_again_at_most_once_at_any_kill_and_a_conclusion_never(simulation in simulation()) {
        let whole = simulation.run(Vec::new());
        for written in 0..whole.len() {
            let before = stored(&whole[..written]);
            let events = whole[..written].iter().map(|written| written.events.len()).sum();
            let after = entries(&simulation.go_on(before.clone(), events));
            let journal: Vec<Entry> = before.into_iter().map(|recorded| recorded.entry).chain(after).collect();
            let is_question = |entry: &&Entry| matches!(entry, Entry::Feedback { about: Some(About::Answer(_)), .. });
            prop_assert!(journal.iter().filter(is_question).count() <= 1, "{:?}", journal);
            let conclusion = journal.iter().skip_while(|entry| !matches!(entry, Entry::Concluding { .. }));
            prop_assert_eq!(conclusion.filter(is_question).count(), 0, "{:?}", journal);
        }
    }

    #[test]
    fn stored_entries_show_the_model_the_same_as_those_in_memory(simulation in simulation()) {
        let whole = simulation.run(Vec::new());
        for (at, written) in whole.iter().enumerate().filter(|(_, written)| written.asked.is_some()) {
            prop_assert_eq!(&simulation.replay(stored(&whole[..at])).messages(), written.shown());
        }
        let events: Vec<&EventDraft> = whole.iter().flat_map(|written| &written.events).collect();
        for RecordedEntry { entry, event, .. } in whole.iter().flat_map(Written::recorded) {
            let (Entry::ToolResult(ToolResult { call_id, .. }) | Entry::Observation(ToolResult { call_id, .. })) = &entry else {
                prop_assert_eq!(event, None);
                continue;
            };
            let emitted = event.map(|number| events[usize::try_from(number).unwrap() - 1]);
            let emitted = emitted.map(|event| (&event.event_type, event.metadata["call_id"].as_str().unwrap()));
            let is_known = !matches!(&entry, Entry::ToolResult(ToolResult { tool, .. }) if tool == "no.such");
            prop_assert_eq!(emitted, is_known.then_some((&EventType::ToolResult, call_id.as_str())));
        }
    }

    #[test]
    fn every_investigation_ends_after_its_iterations_and_four_calls_more(simulation in simulation()) {
        let written = simulation.run(Vec::new());
        let asked = written.iter().filter(|written| written.asked.is_some()).count();
        prop_assert!(asked <= max_calls(&simulation), "{} calls", asked);
    }

    #[test]
    fn every_failure_has_one_event_and_every_call_its_result(simulation in simulation()) {
        let written = simulation.run(Vec::new());
        let journal = entries(&written);
        let events: Vec<&EventDraft> = written.iter().flat_map(|written| &written.events).collect();
        let kind = |kind: &str| events.iter().filter(|event| event.metadata["kind"] == kind).count();
        let failed = |source| journal.iter().filter(|entry| matches!(entry, Entry::Failed { source: of, .. } if *of == source)).count();
        prop_assert_eq!(kind("model"), failed(FailureSource::Model));
        let codes = ["empty", "call_in_text", "max_tokens", "malformed_tool_call", "context_window_exceeded", "blocked", "provider_error", "partial_stream_error"];
        prop_assert_eq!(codes.into_iter().map(kind).sum::<usize>(), failed(FailureSource::Answer));
        let all_ask_again = events.iter().all(|event| event.event_type != EventType::LlmResponse || event.metadata["asked_again"].is_array());
        prop_assert!(simulation.strategy != Strategy::React || all_ask_again);
        let calls = call_ids(&events, &EventType::LlmToolCall);
        let results = call_ids(&events, &EventType::ToolResult);

        let stopped = journal.iter().any(|entry| matches!(entry, Entry::Stopped { .. }));
        prop_assert!(if stopped { results.iter().all(|id| calls.contains(id)) } else { results == calls }, "{:?} {:?}", calls, results);
        let analyses = events.iter().filter(|event| event.event_type == EventType::FinalAnalysis).count();
        prop_assert!(analyses <= 1);
    }

    #[test]
    fn no_investigation_is_completed_without_a_mark_unless_its_answer_ended_by_itself(simulation in simulation()) {
        let journal = entries(&simulation.run(Vec::new()));
        let Some(Entry::Ended { outcome: Outcome::Completed { analysis, mark: None, reason, review: None } }) = journal.last() else {
            return Ok(());
        };
        prop_assert!(!analysis.contains("<tool_call>") && !analysis.contains("<function="), "{}", analysis);
        let is_found = journal.iter().filter_map(Entry::answer).any(|answer: &Answer| matches!(answer.finish, Finish::Stop | Finish::ToolCalls) && !analysis.is_empty() && answer.text.contains(analysis.as_str()));
        prop_assert!(is_found || *reason == StopReason::SynthesisFailed, "{:?}", journal);
    }

    #[test]
    fn no_call_of_an_answer_that_was_cut_is_sent(simulation in simulation()) {
        let journal = entries(&simulation.run(Vec::new()));
        prop_assert!(journal.iter().filter_map(Entry::answer).filter(|answer: &&Answer| !matches!(answer.finish, Finish::Stop | Finish::ToolCalls | Finish::Other)).all(|answer| answer.calls.is_empty()));
    }

    #[test]
    fn every_conversation_is_one_that_every_provider_accepts(simulation in simulation()) {
        let written = simulation.run(Vec::new());
        let asked = written.iter().enumerate().filter(|(_, written)| written.asked.is_some());
        for (before, _) in asked {
            let messages = simulation.replay(entries(&written[..before])).messages();
            let mut wanted: Vec<String> = Vec::new();
            for message in &messages {
                prop_assert!(!message.content.trim().is_empty() || !message.tool_calls.is_empty(), "{:?}", message);
                if let Some(id) = &message.tool_call_id {
                    prop_assert_eq!(Some(id), wanted.first(), "{:?}", messages);
                    wanted.remove(0);
                } else {
                    prop_assert!(wanted.is_empty(), "{:?}", messages);
                    wanted = message.tool_calls.iter().map(|call| call.id.clone()).collect();
                }
                let flat = message.tool_calls.is_empty() && message.tool_call_id.is_none() && message.role != Role::Tool;
                prop_assert!(flat || simulation.strategy == Strategy::NativeThinking, "{:?}", message);
            }
            prop_assert!(wanted.is_empty(), "{:?}", messages);
            prop_assert!(messages.last().is_some_and(|last| last.role != Role::Assistant), "{:?}", messages);
        }
    }

    #[test]
    fn each_provider_takes_over_at_most_once_and_each_switch_has_one_event(simulation in simulation()) {
        let written = simulation.run(Vec::new());
        let switches: Vec<usize> = entries(&written).iter().filter_map(Entry::switched_to).collect();
        prop_assert!(switches.iter().copied().eq(1..=switches.len()), "{:?}", switches);
        for checkpoint in &written {
            let switched = checkpoint.entries.iter().filter_map(Entry::switched_to).count();
            let shown = checkpoint.events.iter().filter(|event| event.event_type == EventType::ProviderFallback).count();
            prop_assert_eq!(switched, shown);
        }
    }
}
