//! Tests of the check of a final answer.

use crate::investigation::execution::entry::{About, Entry, Fault, Outcome, StopReason};
use crate::investigation::plan::{AnswerCheck, Strategy};
use crate::investigation::testing::{Simulation, Turn};

const FOUND: &str = "Final Answer: Cause: x";
const PROMISE: &str = "I will now look at the pods.";

fn simulation(strategy: Strategy, turns: Vec<Turn>) -> Simulation {
    Simulation { answer_check: AnswerCheck::Once, context: None, ..Simulation::new(strategy, 9, turns) }
}

fn says(strategy: Strategy, text: &str) -> Turn {
    if strategy.writes_calls() {
        Turn::says(&format!("Final Answer: {text}"), "", &[])
    } else {
        Turn::says(text, "", &[])
    }
}

fn calls(strategy: Strategy, tool: &str) -> Turn {
    match strategy.writes_calls() {
        true => Turn::says(&format!("Action: {tool}\nAction Input: {{}}"), "", &[]),
        false => Turn::says("", "", &[tool]),
    }
}

/// The outcome, the faults of each answer that was asked for again, and the number of model calls.
fn run(simulation: &Simulation) -> (Outcome, Vec<Vec<Fault>>, usize) {
    let written = simulation.run(Vec::new());
    let asked = written.iter().filter(|written| written.asked.is_some()).count();
    let entries: Vec<Entry> = written.into_iter().flat_map(|written| written.entries).collect();
    let faults = |entry: &Entry| {
        let Entry::Feedback { about: Some(About::Answer(faults)), .. } = entry else { return None };
        Some(faults.clone())
    };
    let reported = entries.iter().filter_map(faults).collect();
    (simulation.replay(entries).ended().unwrap().clone(), reported, asked)
}

fn completed(analysis: &str, reason: StopReason) -> Outcome {
    Outcome::Completed { analysis: analysis.to_owned(), reason, mark: None }
}

#[test]
fn an_answer_that_only_promises_is_asked_for_again_and_the_second_one_counts() {
    for strategy in [Strategy::React, Strategy::NativeThinking] {
        let both = vec![Fault::NotLooked, Fault::NoCause];
        let (outcome, faults, asked) =
            run(&simulation(strategy, vec![says(strategy, PROMISE), says(strategy, PROMISE)]));
        assert_eq!((outcome, asked), (completed(PROMISE, StopReason::FinalAnswer), 2), "at most once");
        assert_eq!(faults, vec![both.clone()]);
        let turns = vec![says(strategy, PROMISE), calls(strategy, "k8s.get"), says(strategy, "Cause: the disk")];
        let (outcome, faults, asked) = run(&simulation(strategy, turns));
        assert_eq!((outcome, asked), (completed("Cause: the disk", StopReason::FinalAnswer), 3));
        assert_eq!(faults, [both]);
    }
}

#[test]
fn a_call_that_was_sent_counts_as_looking_a_lost_one_too_and_one_of_tarsy_does_not() {
    for strategy in [Strategy::React, Strategy::NativeThinking] {
        for tool in ["k8s.get", "k8s.restart", "k8s.silent", "k8s.patch_silent"] {
            let turns = vec![calls(strategy, tool), says(strategy, "Cause: the disk")];
            let (outcome, faults, _) = run(&simulation(strategy, turns));
            assert_eq!((outcome, faults), (completed("Cause: the disk", StopReason::FinalAnswer), vec![]), "{tool}");
        }
        let turns = vec![calls(strategy, "no.such"), says(strategy, "Cause: the disk")];
        assert_eq!(run(&simulation(strategy, turns)).1, [[Fault::NotLooked]]);
        let turns = vec![calls(strategy, "k8s.get"), says(strategy, PROMISE)];
        assert_eq!(run(&simulation(strategy, turns)).1, [[Fault::NoCause]]);
    }
}

#[test]
fn the_first_answer_is_not_lost_when_no_second_one_comes() {
    let native = Strategy::NativeThinking;
    let first = || says(native, "Cause: the disk");
    let fatal = Turn::Fails { code: "credentials", timeout: false };
    for after in [vec![fatal], vec![Turn::times_out(), Turn::times_out()], vec![Turn::fails(); 8]] {
        let (outcome, faults, _) = run(&simulation(native, [vec![first()], after].concat()));
        assert_eq!(outcome, completed("Cause: the disk", StopReason::FinalAnswer));
        assert_eq!(faults, [[Fault::NotLooked]]);
    }
    let late = Simulation { stop: Some((3, StopReason::Deadline)), ..simulation(native, vec![first(), first()]) };
    assert_eq!(run(&late).0, completed("Cause: the disk", StopReason::FinalAnswer));
    let cancelled = Simulation { stop: Some((3, StopReason::Cancelled)), ..simulation(native, vec![first(), first()]) };
    assert_eq!(run(&cancelled).0, Outcome::Cancelled);
}

#[test]
fn no_answer_is_asked_for_again_without_a_turn_tokens_or_tools() {
    let native = Strategy::NativeThinking;
    let promise = || vec![says(native, PROMISE)];
    let one_turn =
        Simulation { answer_check: AnswerCheck::Once, context: None, ..Simulation::new(native, 1, promise()) };
    let mut few_tokens = simulation(native, promise());
    few_tokens.limits.max_tokens = 5;
    let off = Simulation { answer_check: AnswerCheck::Off, ..simulation(native, promise()) };
    for simulation in [one_turn, few_tokens, off] {
        assert_eq!(run(&simulation), (completed(PROMISE, StopReason::FinalAnswer), vec![], 1));
    }
    for strategy in [Strategy::SingleCall, Strategy::Synthesis] {
        assert_eq!(run(&simulation(strategy, vec![Turn::says(PROMISE, "", &[])])).2, 1);
    }
    let of_a_later_stage = Simulation { context: Some("found".to_owned()), ..simulation(native, vec![]) };
    assert_eq!(run(&of_a_later_stage), (completed(FOUND, StopReason::FinalAnswer), vec![], 1), "others have looked");
}
