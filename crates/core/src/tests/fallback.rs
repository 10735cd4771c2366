//! Tests of the fallback between providers: after which failures the next one takes over, and what it is asked.

use serde_json::json;
use strum::VariantNames;

use crate::execution::decide::{Decision, Purpose, decide};
use crate::execution::entry::{
    Answer, Entry, Mark, Outcome, ProviderData, Role, StopReason, Usage,
};
use crate::execution::window::ToolBinding;
use crate::plan::{Limits, Strategy};
use crate::testing::{Simulation, Turn, Written};
use crate::timeline::EventType;
use crate::vocabulary::ErrorCode;

const NATIVE: Strategy = Strategy::NativeThinking;

fn fails(code: &'static str) -> Turn {
    Turn::Fails {
        code,
        timeout: false,
    }
}

fn looks() -> Turn {
    Turn::says("", "", &["k8s.get"])
}

/// With one more provider.
fn simulation(strategy: Strategy, max_iterations: u32, turns: Vec<Turn>) -> Simulation {
    Simulation {
        fallbacks: 1,
        ..Simulation::new(strategy, max_iterations, turns)
    }
}

fn entries(written: &[Written]) -> Vec<Entry> {
    written
        .iter()
        .flat_map(|written| written.entries.clone())
        .collect()
}

/// The failed calls before each switch, and the outcome.
fn run(simulation: &Simulation) -> (Vec<usize>, Outcome) {
    let journal = entries(&simulation.run(Vec::new()));
    let switches = journal
        .iter()
        .enumerate()
        .filter(|(_, entry)| entry.switched_to().is_some());
    let Some(Entry::Ended { outcome }) = journal.last() else {
        panic!("no end: {journal:?}")
    };
    (
        switches
            .map(|(at, _): (usize, &Entry)| {
                journal
                    .iter()
                    .take(at)
                    .filter_map(Entry::model_failure)
                    .count()
            })
            .collect(),
        outcome.clone(),
    )
}

fn completed(reason: StopReason) -> Outcome {
    Outcome::Completed {
        analysis: "Final Answer: Cause: x".to_owned(),
        reason,
        mark: None,
        review: None,
    }
}

#[test]
fn the_next_provider_takes_over_after_one_failure_or_two_by_the_error_code() {
    let at_once = [
        "max_retries",
        "unavailable",
        "rate_limited",
        "empty_response",
        "malformed_tool_call",
        "credentials",
        "invalid_backend",
        "invalid_request",
        "model_not_found",
        "blocked",
        "thought_signature",
    ];
    for code in ErrorCode::VARIANTS
        .iter()
        .copied()
        .chain(["a_new_code", ""])
        .filter(|code| !["empty", "call_in_text", "context_window_exceeded"].contains(code))
    {
        let expected = if at_once.contains(&code) { 1 } else { 2 };
        let outcome = completed(StopReason::FinalAnswer);
        assert_eq!(
            run(&simulation(NATIVE, 9, vec![fails(code); expected])),
            (vec![expected], outcome.clone()),
            "{code}"
        );
        if expected == 2 {
            let turns = vec![fails(code), looks(), fails(code)];
            assert_eq!(
                run(&simulation(NATIVE, 9, turns)),
                (vec![], outcome),
                "{code}: an answer between"
            );
        }
    }
}

#[test]
fn two_empty_answers_in_a_row_are_a_reason_to_switch_and_keep_their_feedback() {
    let empty = || Turn::says("", "", &[]);
    let simulation = simulation(NATIVE, 9, vec![empty(), empty()]);
    assert_eq!(
        run(&simulation),
        (vec![1], completed(StopReason::FinalAnswer))
    );
    let journal = entries(&simulation.run(Vec::new()));
    let until = journal
        .iter()
        .position(|entry| entry.switched_to().is_some())
        .unwrap();
    let shown = simulation.replay(journal[..=until].to_vec()).messages();
    assert_eq!(shown.last().map(|message| message.role), Some(Role::User));
}

#[test]
fn a_failure_that_would_end_the_execution_makes_the_next_provider_go_on() {
    let late = Turn::times_out;
    let broken = || fails("partial_stream_error");
    let answered = completed(StopReason::FinalAnswer);
    let forced = completed(StopReason::MaxIterations);

    for (strategy, max_iterations, turns, failures, outcome) in [
        (Strategy::SingleCall, 9, vec![broken()], 1, &answered),
        (Strategy::Synthesis, 9, vec![broken()], 2, &answered),
        (
            Strategy::Synthesis,
            9,
            vec![fails("context_window_exceeded")],
            1,
            &answered,
        ),
        (NATIVE, 1, vec![broken()], 1, &forced),
        (NATIVE, 1, vec![looks(), broken()], 1, &forced),
        (
            NATIVE,
            9,
            vec![Turn::says("", "", &["k8s.silent"]), late()],
            1,
            &answered,
        ),
        (NATIVE, 9, vec![late(), late()], 2, &answered),
    ] {
        let turns = if strategy == Strategy::Synthesis && failures == 2 {
            vec![broken(), broken()]
        } else {
            turns
        };
        let simulation = simulation(strategy, max_iterations, turns);
        assert_eq!(
            run(&simulation),
            (vec![failures], outcome.clone()),
            "{strategy:?} {:?}",
            simulation.turns
        );
    }
}

#[test]
fn after_the_last_provider_an_execution_ends_as_without_any_fallback() {
    let refused = || fails("credentials");
    let simulation = |strategy, turns| Simulation {
        fallbacks: 2,
        ..Simulation::new(strategy, 9, turns)
    };
    let failed = Outcome::Failed {
        error: "broke".to_owned(),
        reason: StopReason::Error,
    };
    assert_eq!(
        run(&simulation(NATIVE, vec![refused(), refused(), refused()])),
        (vec![1, 2], failed)
    );
    let analyses = Outcome::Completed {
        analysis: "found before".to_owned(),
        reason: StopReason::SynthesisFailed,
        mark: Some(Mark::NotCombined),
        review: None,
    };
    let synthesis = simulation(Strategy::Synthesis, vec![refused(), refused(), refused()]);
    assert_eq!(run(&synthesis), (vec![1, 2], analyses));
    let found = run(&simulation(
        NATIVE,
        vec![refused(), fails("internal"), refused(), looks()],
    ));
    assert_eq!(found, (vec![1, 3], completed(StopReason::FinalAnswer)));
}

#[test]
fn a_switch_costs_the_failed_iteration_and_no_budget_starts_again() {
    let limits = |max_iterations, max_tokens| Limits {
        max_iterations,
        max_tokens,
        ..Limits::default()
    };
    // An answer costs 10 tokens.
    for (limits, reason, answers) in [
        (limits(3, 0), StopReason::MaxIterations, 2),
        (limits(9, 20), StopReason::Budget, 2),
    ] {
        let turns = vec![looks(), fails("credentials"), looks()];
        let simulation = Simulation {
            limits,
            ..simulation(NATIVE, 9, turns)
        };
        let written = simulation.run(Vec::new());
        let state = simulation.replay(entries(&written));
        assert_eq!(
            (state.provider(), state.ended()),
            (1, Some(&completed(reason)))
        );
        let conclusion = written
            .iter()
            .position(|written| written.asked == Some(Purpose::Conclusion))
            .unwrap();
        let before = entries(&written[..conclusion]);
        assert_eq!(
            before
                .iter()
                .filter(|entry| entry.answer().is_some())
                .count(),
            answers,
            "{reason:?}"
        );
    }
}

#[test]
fn until_its_first_answer_the_new_provider_is_asked_with_an_empty_cache() {
    let turns = vec![looks(), fails("credentials"), fails("internal"), looks()];
    let simulation = simulation(NATIVE, 9, turns);
    let written = simulation.run(Vec::new());

    let asked = written
        .iter()
        .enumerate()
        .filter(|(_, written)| written.asked.is_some());
    let calls = asked.map(
        |(at, _)| match decide(&simulation.replay(entries(&written[..at]))) {
            Decision::CallModel(call) => (call.provider, call.is_taken_over),
            Decision::Append(_)
            | Decision::RunTools(_)
            | Decision::Await(_)
            | Decision::Wait(_)
            | Decision::Summarise(_)
            | Decision::Done(_) => {
                panic!("no model call")
            }
        },
    );
    let calls: Vec<_> = calls.collect();
    assert_eq!(
        calls,
        [(0, false), (0, false), (1, true), (1, true), (1, false)]
    );
}

#[test]
fn failure_and_switch_are_one_checkpoint_with_two_events() {
    let written = simulation(NATIVE, 9, vec![looks(), fails("credentials")]).run(Vec::new());
    let checkpoint = written
        .iter()
        .find(|written| written.entries.iter().any(|e| e.switched_to().is_some()))
        .unwrap();
    let kinds: Vec<&str> = checkpoint.entries.iter().map(Entry::kind).collect();
    assert_eq!(kinds, ["failed", "switched"]);
    let [error, fallback] = checkpoint.events.as_slice() else {
        panic!("{:?}", checkpoint.events)
    };
    assert_eq!(
        (&error.event_type, &error.metadata["code"]),
        (&EventType::Error, &json!("credentials"))
    );
    assert_eq!(fallback.event_type, EventType::ProviderFallback);
    assert_eq!(fallback.content, "p has failed (credentials): p1 goes on");
    assert_eq!(
        fallback.metadata,
        json!({"from": "p", "to": "p1", "code": "credentials", "reason": "broke"})
    );
}

#[test]
fn the_window_of_the_new_provider_counts_text_and_not_the_other_ones_data() {
    let data = ProviderData {
        provider: "google".into(),
        model: "m".into(),
        format: "f".into(),
        payload: vec![0; 9_000],
    };
    let usage = Usage {
        input_tokens: 900,
        ..Usage::default()
    };
    let Turn::Says(says) = looks() else {
        unreachable!()
    };
    let says = Answer {
        provider_data: Some(Box::new(data)),
        usage,
        ..*says
    };
    let simulation = simulation(
        NATIVE,
        9,
        vec![Turn::Says(Box::new(says)), fails("credentials")],
    );
    let written = simulation.run(Vec::new());
    let journal = entries(&written);
    let at = journal
        .iter()
        .position(|entry| entry.switched_to().is_some())
        .unwrap();
    let tokens = |until: usize| {
        let state = simulation.replay(journal[..until].to_vec());
        state.window().estimate(ToolBinding::Bound)
    };
    assert!(
        tokens(at) > 9_000,
        "the payload goes back to its own provider: {}",
        tokens(at)
    );
    assert!(
        tokens(at + 1) < 200,
        "and not to another one: {}",
        tokens(at + 1)
    );
}
