//! Tests of answers that were cut off, paused, filtered, or that have a call in their text.

use crate::execution::decide::Purpose;
use crate::execution::entry::{Answer, Entry, Finish, Mark, Outcome, StopReason};
use crate::plan::Strategy;
use crate::testing::{Simulation, Turn, Written};
use crate::timeline::EventType;

const FOUND: &str = "Final Answer: Cause: x";
const MARKUP: &str = "<tool_call>{\"name\": \"k8s__get\", \"arguments\": {}}</tool_call>";

fn ends(text: &str, tools: &[&str], finish: Finish) -> Turn {
    let Turn::Says(answer) = Turn::says(text, "", tools) else {
        panic!("no answer")
    };
    Turn::Says(Box::new(Answer { finish, ..*answer }))
}

fn looks(strategy: Strategy) -> Turn {
    match strategy.writes_calls() {
        true => ends(
            "Thought: t\nAction: k8s.get\nAction Input: {\"n\": 7}",
            &[],
            Finish::Stop,
        ),
        false => ends("", &["k8s.get"], Finish::ToolCalls),
    }
}

/// An answer of this strategy with a call of a tool that may change something, and an end.
fn acts(strategy: Strategy, finish: Finish) -> Turn {
    let text = "Thought: t\nAction: k8s.restart\nAction Input: {\"n\": 1";
    if strategy.writes_calls() {
        ends(text, &[], finish)
    } else {
        ends("I restart it. ", &["k8s.restart"], finish)
    }
}

fn concludes(strategy: Strategy, finish: Finish) -> Turn {
    ends(
        if strategy.writes_calls() {
            "Final Answer: Cause: the"
        } else {
            "Cause: the"
        },
        &[],
        finish,
    )
}

struct Ran {
    outcome: Outcome,
    purposes: Vec<Purpose>,
    written: Vec<Written>,
}

fn run(simulation: &Simulation) -> Ran {
    let written = simulation.run(Vec::new());
    let entries: Vec<Entry> = written
        .iter()
        .flat_map(|written| written.entries.clone())
        .collect();
    let state = simulation.replay(entries);
    Ran {
        outcome: state.ended().unwrap().clone(),
        purposes: written.iter().filter_map(|written| written.asked).collect(),
        written,
    }
}

impl Ran {
    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.written.iter().flat_map(|written| &written.entries)
    }

    fn started(&self) -> usize {
        self.entries()
            .filter(|entry| matches!(entry, Entry::Started { .. }))
            .count()
    }

    fn feedback(&self) -> Vec<&str> {
        let texts = self.entries().filter_map(|entry| {
            let Entry::Feedback { content, .. } = entry else {
                return None;
            };
            Some(content.as_str())
        });
        texts.collect()
    }

    fn codes(&self) -> Vec<&str> {
        self.entries()
            .filter_map(|entry| entry.model_failure().map(|(code, _)| code))
            .collect()
    }
}

fn whole(analysis: &str) -> Outcome {
    Outcome::Completed {
        analysis: analysis.to_owned(),
        reason: StopReason::FinalAnswer,
        mark: None,
        review: None,
    }
}

const CUT: [Finish; 8] = [
    Finish::MaxTokens,
    Finish::Safety,
    Finish::Recitation,
    Finish::MalformedToolCall,
    Finish::ContextWindow,
    Finish::Paused,
    Finish::Error,
    Finish::Other,
];

#[test]
fn a_cut_answer_runs_no_call_and_ends_nothing_in_any_strategy() {
    for strategy in [Strategy::React, Strategy::NativeThinking] {
        for finish in CUT.into_iter().filter(|finish| *finish != Finish::Other) {
            let found = if strategy.writes_calls() {
                "Cause: x"
            } else {
                FOUND
            };
            for turn in [acts(strategy, finish), concludes(strategy, finish)] {
                let ran = run(&Simulation::new(strategy, 9, vec![looks(strategy), turn]));
                let reason = if finish == Finish::ContextWindow {
                    StopReason::ContextWindow
                } else {
                    StopReason::FinalAnswer
                };
                let outcome = Outcome::Completed {
                    analysis: found.to_owned(),
                    reason,
                    mark: None,
                    review: None,
                };
                assert_eq!(
                    (&ran.outcome, ran.started()),
                    (&outcome, 0),
                    "{strategy:?} {finish:?}"
                );
                assert_eq!(ran.purposes.len(), 3, "{finish:?}");
                assert!(
                    ran.feedback().concat().contains(finish.as_str()),
                    "the model gets the reason: {:?}",
                    ran.feedback()
                );
            }
        }
    }
}

#[test]
fn three_cut_answers_in_a_row_force_the_conclusion() {
    for finish in [Finish::MaxTokens, Finish::Paused, Finish::MalformedToolCall] {
        let turns = vec![acts(Strategy::NativeThinking, finish); 3];
        let ran = run(&Simulation::new(Strategy::NativeThinking, 9, turns));
        let outcome = Outcome::Completed {
            analysis: FOUND.to_owned(),
            reason: StopReason::CutAnswers,
            mark: None,
            review: None,
        };
        assert_eq!(
            (ran.outcome.clone(), ran.started()),
            (outcome, 0),
            "{finish:?}"
        );
        assert_eq!(
            ran.codes().len(),
            2,
            "the first is only asked for again: {:?}",
            ran.codes()
        );
    }
}

#[test]
fn the_next_provider_takes_over_from_one_whose_answers_are_filtered() {
    for strategy in [
        Strategy::React,
        Strategy::NativeThinking,
        Strategy::Synthesis,
    ] {
        let turns = vec![concludes(strategy, Finish::Safety)];
        let simulation = Simulation {
            fallbacks: 1,
            ..Simulation::new(strategy, 9, turns)
        };
        let ran = run(&simulation);
        let switched = ran
            .entries()
            .filter(|entry| entry.switched_to().is_some())
            .count();
        assert_eq!(
            (switched, ran.codes()),
            (1, vec!["blocked"]),
            "{strategy:?}"
        );
        let Outcome::Completed { mark, .. } = ran.outcome else {
            panic!("{:?}", ran.outcome)
        };
        assert_eq!(mark, None);
    }
}

#[test]
fn a_last_answer_is_asked_for_once_more_then_kept_and_marked_as_incomplete() {
    let strategies = [
        Strategy::React,
        Strategy::NativeThinking,
        Strategy::Synthesis,
        Strategy::SingleCall,
    ];
    for (strategy, finish) in strategies
        .into_iter()
        .flat_map(|strategy| CUT.map(|finish| (strategy, finish)))
    {
        let first = if strategy.uses_tools() {
            vec![looks(strategy)]
        } else {
            Vec::new()
        };
        let cut = concludes(strategy, finish);
        let iterations = 1;

        let twice = [first.clone(), vec![cut.clone(), cut.clone()]].concat();
        let ran = run(&Simulation::new(strategy, iterations, twice));
        let Outcome::Completed { analysis, mark, .. } = &ran.outcome else {
            panic!("{strategy:?} {finish:?}")
        };
        assert!(
            analysis.contains("Cause: the") && *mark == Some(Mark::Incomplete),
            "{strategy:?} {finish:?}"
        );
        let last = ran.written.last().unwrap().events.last().unwrap();
        assert_eq!(
            (last.event_type.clone(), last.metadata["mark"].as_str()),
            (EventType::FinalAnalysis, Some("incomplete"))
        );
        let once = run(&Simulation::new(
            strategy,
            iterations,
            [first, vec![cut]].concat(),
        ));
        let Outcome::Completed { mark, .. } = once.outcome else {
            panic!("{strategy:?} {finish:?}")
        };
        assert_eq!(
            mark, None,
            "the second answer is whole: {strategy:?} {finish:?}"
        );
    }
}

#[test]
fn a_cut_conclusion_is_kept_when_the_second_request_fails() {
    for strategy in [
        Strategy::React,
        Strategy::NativeThinking,
        Strategy::SingleCall,
    ] {
        let first = if strategy.uses_tools() {
            vec![looks(strategy)]
        } else {
            Vec::new()
        };
        let cut = concludes(strategy, Finish::MaxTokens);
        let ran = run(&Simulation::new(
            strategy,
            1,
            [first, vec![cut, Turn::fails()]].concat(),
        ));
        let Outcome::Completed { analysis, mark, .. } = &ran.outcome else {
            panic!("{:?}", ran.outcome)
        };
        assert!(
            analysis.contains("Cause: the") && *mark == Some(Mark::Incomplete),
            "{strategy:?}"
        );
    }
}

#[test]
fn an_unknown_reason_takes_whole_calls_and_asks_for_a_text_again() {
    let native = Strategy::NativeThinking;
    let ran = run(&Simulation::new(
        native,
        9,
        vec![ends("", &["k8s.restart"], Finish::Other)],
    ));
    assert_eq!((&ran.outcome, ran.started()), (&whole(FOUND), 1));
    let ran = run(&Simulation::new(
        native,
        9,
        vec![looks(native), concludes(native, Finish::Other)],
    ));
    assert_eq!((&ran.outcome, ran.purposes.len()), (&whole(FOUND), 3));
}

#[test]
fn a_call_left_in_the_text_is_never_run_and_never_an_analysis() {
    for strategy in [Strategy::NativeThinking, Strategy::React] {
        let text = if strategy.writes_calls() {
            format!("Final Answer: {MARKUP}")
        } else {
            MARKUP.to_owned()
        };
        let left = || ends(&text, &[], Finish::Stop);
        let ran = run(&Simulation::new(
            strategy,
            9,
            vec![looks(strategy), left(), left()],
        ));
        let Outcome::Completed { analysis, .. } = &ran.outcome else {
            panic!("{:?}", ran.outcome)
        };
        assert!(
            !analysis.contains("tool_call") && ran.purposes.len() == 4,
            "{analysis}"
        );
        let to_the_end = run(&Simulation::new(strategy, 2, vec![left(); 9]));
        let Outcome::Failed { error, .. } = &to_the_end.outcome else {
            panic!("{:?}", to_the_end.outcome)
        };
        assert!(error.contains("call") || error.contains("empty"), "{error}");
    }
}

#[test]
fn invisible_text_and_reasoning_are_an_empty_answer() {
    for (text, thinking) in [("\u{200b}\u{2060} ", ""), ("", "It is the disk.")] {
        for strategy in [
            Strategy::React,
            Strategy::NativeThinking,
            Strategy::Synthesis,
            Strategy::SingleCall,
        ] {
            let ran = run(&Simulation::new(
                strategy,
                9,
                vec![Turn::says(text, thinking, &[])],
            ));
            assert!(
                ran.feedback()[0].starts_with("Your previous response was empty"),
                "{strategy:?}: {:?}",
                ran.feedback()
            );
            let Outcome::Completed { analysis, .. } = &ran.outcome else {
                panic!("{:?}", ran.outcome)
            };
            assert!(analysis.contains("Cause: x"), "{analysis}");
        }
    }
}

#[test]
fn the_output_limit_is_raised_after_an_answer_of_this_provider_that_it_has_cut() {
    let cut = || ends("Thought: I", &[], Finish::MaxTokens);
    let whole = || looks(Strategy::NativeThinking);

    let fails = |code| Turn::Fails {
        code,
        timeout: false,
    };
    for (turns, expected) in [
        (vec![], false),
        (vec![whole()], false),
        (vec![cut()], true),
        (vec![cut(), whole()], false),
        (vec![whole(), cut(), cut()], true),
        (vec![ends("x", &[], Finish::ContextWindow)], false),
        // Thoughts alone may reach the limit; after two such failures the next provider takes over.
        (vec![fails("max_tokens")], true),
        (vec![fails("max_tokens"), fails("max_tokens")], false),
        (vec![cut(), fails("provider_error")], true),
        (vec![whole(), fails("provider_error")], false),
        // Another provider has limits of its own.
        (vec![cut(), fails("credentials")], false),
    ] {
        let count = u32::try_from(turns.len()).unwrap();
        let simulation = Simulation {
            fallbacks: 1,
            ..Simulation::new(Strategy::NativeThinking, 20, turns.clone())
        };
        let entries: Vec<Entry> = run(&simulation).entries().cloned().collect();
        // The journal as it was before the next model call.
        let states =
            (0..=entries.len()).map(|length| simulation.replay(entries[..length].to_vec()));
        let state = states
            .take_while(|state| state.iteration() <= count)
            .last()
            .unwrap();
        assert_eq!(state.was_cut_at_limit(), expected, "{turns:?}");
    }
}
