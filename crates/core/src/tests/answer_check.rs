//! Tests of the check of a final answer.

use crate::execution::entry::{About, Entry, Fault, Mark, Outcome, StopReason};
use crate::plan::{AnswerCheck, Strategy};
use crate::testing::{Simulation, Turn};

const FOUND: &str = "Final Answer: Cause: x";
const PROVEN: &str = "Cause: the disk [k8s.get]";
const PROMISE: &str = "I will now look at the pods.";

fn simulation(strategy: Strategy, turns: Vec<Turn>) -> Simulation {
    Simulation {
        answer_check: AnswerCheck::Once,
        context: None,
        ..Simulation::new(strategy, 9, turns)
    }
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
    let asked = written
        .iter()
        .filter(|written| written.asked.is_some())
        .count();
    let entries: Vec<Entry> = written
        .into_iter()
        .flat_map(|written| written.entries)
        .collect();
    let reported = entries
        .iter()
        .filter_map(|entry: &Entry| {
            let Entry::Feedback {
                about: Some(About::Answer(faults)),
                ..
            } = entry
            else {
                return None;
            };
            Some(faults.clone())
        })
        .collect();
    (
        simulation.replay(entries).ended().unwrap().clone(),
        reported,
        asked,
    )
}

fn ended(analysis: &str, mark: Option<Mark>) -> Outcome {
    Outcome::Completed {
        analysis: analysis.to_owned(),
        reason: StopReason::FinalAnswer,
        mark,
        review: None,
    }
}

#[test]
fn an_answer_that_only_promises_is_asked_for_again_and_the_second_one_counts() {
    for strategy in [Strategy::React, Strategy::NativeThinking] {
        let both = vec![Fault::NotLooked, Fault::NoCause];
        let (outcome, faults, asked) = run(&simulation(
            strategy,
            vec![says(strategy, PROMISE), says(strategy, PROMISE)],
        ));
        assert_eq!(
            (outcome, asked),
            (ended(PROMISE, Some(Mark::NotLooked)), 2),
            "at most once"
        );
        assert_eq!(faults, vec![both.clone()]);
        let turns = vec![
            says(strategy, PROMISE),
            calls(strategy, "k8s.get"),
            says(strategy, PROVEN),
        ];
        let (outcome, faults, asked) = run(&simulation(strategy, turns));
        assert_eq!((outcome, asked), (ended(PROVEN, None), 3));
        assert_eq!(faults, [both]);
    }
}

#[test]
fn a_call_that_was_sent_counts_as_looking_a_lost_one_too_and_one_of_tarsy_does_not() {
    for strategy in [Strategy::React, Strategy::NativeThinking] {
        for (tool, mark) in [
            ("k8s.get", None),
            ("k8s.restart", None),
            ("k8s.silent", Some(Mark::CallsFailed)),
            ("k8s.patch_silent", Some(Mark::CallsFailed)),
        ] {
            let analysis = format!("Cause: the disk [{tool}]");
            let turns = vec![calls(strategy, tool), says(strategy, &analysis)];
            let (outcome, faults, _) = run(&simulation(strategy, turns));
            assert_eq!(
                (outcome, faults),
                (ended(&analysis, mark), vec![]),
                "{tool}"
            );
        }
        let turns = vec![
            calls(strategy, "no.such"),
            says(strategy, "Cause: the disk"),
        ];
        assert_eq!(run(&simulation(strategy, turns)).1, [[Fault::NotLooked]]);
        let turns = vec![calls(strategy, "k8s.get"), says(strategy, PROMISE)];
        assert_eq!(
            run(&simulation(strategy, turns)).1,
            [[Fault::NoCause, Fault::NoSource]]
        );
    }
}

#[test]
fn an_answer_has_to_cite_results_that_exist_in_its_cause_or_evidence() {
    for strategy in [Strategy::React, Strategy::NativeThinking] {
        let of = |first: &str, second: &str| {
            run(&simulation(
                strategy,
                vec![
                    calls(strategy, "k8s.get"),
                    says(strategy, first),
                    says(strategy, second),
                ],
            ))
        };
        let bare = "Cause: the disk\nEvidence: it is full\n\nThe log says so [k8s.get].";
        let (outcome, faults, asked) = of(bare, bare);
        assert_eq!((outcome, asked), (ended(bare, Some(Mark::NoSource)), 3));
        assert_eq!(faults, [[Fault::NoSource]]);
        let (outcome, faults, _) = of("Cause: the disk [999]", PROVEN);
        assert_eq!(
            (outcome, faults),
            (
                ended(PROVEN, None),
                vec![vec![Fault::NoSource, Fault::UnknownSource]]
            )
        );
        let (outcome, faults, _) = of(
            "Cause: the disk [999] [k8s.get]",
            "Cause: the disk [999] [k8s.get]",
        );
        let marked = "Cause: the disk [999?] [k8s.get]";
        assert_eq!(
            (outcome, faults),
            (
                ended(marked, Some(Mark::UnknownSource)),
                vec![vec![Fault::UnknownSource]]
            )
        );
        let only_below = "Cause: the disk [k8s.get]\nEvidence: full [k8s.get]\n\nSee also [999].";
        let (outcome, faults, _) = of(only_below, PROVEN);
        let shown = ended(&only_below.replace("[999]", "[999?]"), None);
        assert_eq!(
            (outcome, faults),
            (shown, vec![]),
            "the numbers of the claims count"
        );
    }
}

#[test]
fn the_message_names_the_numbers_that_no_result_has() {
    let native = Strategy::NativeThinking;
    let turns = vec![
        calls(native, "k8s.get"),
        says(native, "Cause: x [998, 999] [k8s.get]"),
        says(native, PROVEN),
    ];
    let written = simulation(native, turns).run(Vec::new());
    let entries = written.iter().flat_map(|written| &written.entries);
    let messages: Vec<&str> = entries
        .filter_map(|entry| {
            let Entry::Feedback { content, .. } = entry else {
                return None;
            };
            Some(content.as_str())
        })
        .collect();
    assert_eq!(messages.len(), 1);
    assert!(
        messages[0].contains("\n- No result has the number 998 or 999.\n"),
        "{}",
        messages[0]
    );
}

#[test]
fn the_first_answer_is_not_lost_when_no_second_one_comes() {
    let native = Strategy::NativeThinking;
    let first = || says(native, "Cause: the disk");
    let unproven = || ended("Cause: the disk", Some(Mark::NotLooked));
    let fatal = Turn::Fails {
        code: "credentials",
        timeout: false,
    };
    for after in [
        vec![fatal],
        vec![Turn::times_out(), Turn::times_out()],
        vec![Turn::fails(); 8],
    ] {
        let (outcome, faults, _) = run(&simulation(native, [vec![first()], after].concat()));
        assert_eq!(
            (outcome, faults),
            (unproven(), vec![vec![Fault::NotLooked]])
        );
    }
    let late = Simulation {
        stop: Some((3, StopReason::Deadline)),
        ..simulation(native, vec![first(), first()])
    };
    assert_eq!(run(&late).0, unproven());
    let cancelled = Simulation {
        stop: Some((3, StopReason::Cancelled)),
        ..simulation(native, vec![first(), first()])
    };
    assert_eq!(run(&cancelled).0, Outcome::Cancelled);
}

#[test]
fn no_answer_is_asked_for_again_without_a_turn_tokens_or_tools() {
    let native = Strategy::NativeThinking;
    let promise = || vec![says(native, PROMISE)];
    let one_turn = Simulation {
        answer_check: AnswerCheck::Once,
        context: None,
        ..Simulation::new(native, 1, promise())
    };
    let mut few_tokens = simulation(native, promise());
    few_tokens.limits.max_tokens = 5;
    for simulation in [one_turn, few_tokens] {
        assert_eq!(
            run(&simulation),
            (ended(PROMISE, Some(Mark::NotLooked)), vec![], 1)
        );
    }
    let off = Simulation {
        answer_check: AnswerCheck::Off,
        ..simulation(native, promise())
    };
    assert_eq!(
        run(&off),
        (ended(PROMISE, None), vec![], 1),
        "a plan of an older version"
    );
    for strategy in [Strategy::SingleCall, Strategy::Synthesis] {
        let (outcome, _, asked) = run(&simulation(strategy, vec![Turn::says(PROMISE, "", &[])]));
        assert_eq!((outcome, asked), (ended(PROMISE, Some(Mark::NoTools)), 1));
    }
    let of_a_later_stage = Simulation {
        context: Some("found [7]".to_owned()),
        ..simulation(native, vec![])
    };
    let unproven = ended(FOUND, Some(Mark::NoSource));
    assert_eq!(
        run(&of_a_later_stage),
        (unproven, vec![], 1),
        "others have looked"
    );
    let cites = vec![says(native, "Cause: x [7]")];
    let of_a_later_stage = Simulation {
        context: Some("found [7]".to_owned()),
        ..simulation(native, cites)
    };
    assert_eq!(
        run(&of_a_later_stage),
        (ended("Cause: x [7]", None), vec![], 1)
    );
}

#[test]
fn a_failed_synthesis_of_analyses_that_cite_nothing_proves_nothing() {
    let mark_of = |context: &str| {
        let turns = vec![Turn::Fails {
            code: "credentials",
            timeout: false,
        }];
        let simulation = Simulation {
            context: Some(context.to_owned()),
            ..simulation(Strategy::Synthesis, turns)
        };
        let Outcome::Completed {
            mark,
            reason: StopReason::SynthesisFailed,
            ..
        } = run(&simulation).0
        else {
            panic!("the findings take the place of the synthesis")
        };
        mark
    };
    assert_eq!(mark_of("Cause: the disk"), Some(Mark::NoSource));
    assert_eq!(mark_of("Cause: the disk [7]"), Some(Mark::NotCombined));
}
