//! Tests of scripted executions: their outcome, their calls and their conversation.

use crate::execution::absorb::{absorb, failed};
use crate::execution::decide::Purpose;
use crate::execution::entry::{
    Answer, Entry, FailureSource, Mark, Outcome, ProviderData, Role, StopReason,
};
use crate::execution::results::{CallError, ToolOutput, answered, unanswered};
use crate::plan::Strategy;
use crate::testing::{Simulation, Turn, Written};

const REACT: Strategy = Strategy::React;
const NATIVE: Strategy = Strategy::NativeThinking;
const SYNTHESIS: Strategy = Strategy::Synthesis;

fn look(n: u32) -> Turn {
    Turn::says(
        &format!("Thought: look\nAction: k8s.get\nAction Input: {{\"n\": {n}}}"),
        "",
        &["k8s.get"],
    )
}

fn text(text: &str) -> Turn {
    Turn::says(text, "", &[])
}

fn calls(tools: &[&str]) -> Turn {
    Turn::says("", "", tools)
}

fn completed(analysis: &str, reason: StopReason) -> Outcome {
    Outcome::Completed {
        analysis: analysis.to_owned(),
        reason,
        mark: None,
        review: None,
    }
}

fn broken(error: &str, reason: StopReason) -> Outcome {
    Outcome::Failed {
        error: error.to_owned(),
        reason,
    }
}

/// The outcome, the model calls and the tool calls.
type Flow = (Outcome, usize, u32);

fn flow(simulation: &Simulation) -> Flow {
    let written = simulation.run(Vec::new());
    let asked = written
        .iter()
        .filter(|written| written.asked.is_some())
        .count();
    let state = simulation.replay(journal(&written));
    (state.ended().unwrap().clone(), asked, state.tool_calls())
}

fn journal(written: &[Written]) -> Vec<Entry> {
    written
        .iter()
        .flat_map(|written| written.entries.clone())
        .collect()
}

fn assert_flows(rows: Vec<(Strategy, u32, Vec<Turn>, Flow)>) {
    for (strategy, max_iterations, turns, expected) in rows {
        let simulation = Simulation::new(strategy, max_iterations, turns);
        assert_eq!(
            flow(&simulation),
            expected,
            "{strategy:?} {max_iterations} {:?}",
            simulation.turns
        );
    }
}

/// The model's answer after the end of its script.
const FOUND: &str = "Cause: x";

#[test]
fn a_model_gets_feedback_about_its_errors_and_goes_on() {
    let found = || completed(FOUND, StopReason::FinalAnswer);
    assert_flows(vec![
        (
            REACT,
            9,
            vec![text("Action: no.such\nAction Input: {}"), look(1)],
            (found(), 3, 1),
        ),
        (REACT, 9, vec![text("I am not sure.")], (found(), 2, 0)),
        (
            REACT,
            9,
            vec![text("Action: k8s.silent\nAction Input: {}")],
            (found(), 2, 1),
        ),
        (
            REACT,
            9,
            vec![Turn::fails(), Turn::fails(), Turn::fails()],
            (found(), 4, 0),
        ),
        (REACT, 9, vec![text(""), look(1), text("")], (found(), 4, 1)),
        (
            REACT,
            9,
            vec![text(""), text(""), text("")],
            (found(), 4, 0),
        ),
        (
            SYNTHESIS,
            1,
            vec![Turn::fails()],
            (
                completed("Final Answer: Cause: x", StopReason::FinalAnswer),
                2,
                0,
            ),
        ),
        (
            SYNTHESIS,
            1,
            vec![text("")],
            (
                completed("Final Answer: Cause: x", StopReason::FinalAnswer),
                2,
                0,
            ),
        ),
        (SYNTHESIS, 1, vec![Turn::says(" ", "both", &[])], {
            (
                completed("Final Answer: Cause: x", StopReason::FinalAnswer),
                2,
                0,
            )
        }),
    ]);
}

#[test]
fn two_timeouts_in_a_row_end_an_execution_and_a_success_between_them_does_not() {
    let late = Turn::times_out;
    let found = |asked, tools| {
        (
            completed("Final Answer: Cause: x", StopReason::FinalAnswer),
            asked,
            tools,
        )
    };
    let aborted = |asked, tools| {
        (
            broken(
                "aborted after 2 consecutive timeouts (iteration 3/9): broke",
                StopReason::Timeouts,
            ),
            asked,
            tools,
        )
    };
    assert_flows(vec![
        (NATIVE, 9, vec![late(), late()], aborted(2, 0)),
        (
            NATIVE,
            9,
            vec![calls(&["k8s.silent"]), late()],
            aborted(2, 1),
        ),
        (
            NATIVE,
            9,
            vec![calls(&["k8s.get", "k8s.silent"]), late()],
            aborted(2, 2),
        ),
        (
            NATIVE,
            9,
            vec![calls(&["k8s.silent", "k8s.get"]), late()],
            found(3, 2),
        ),
        (NATIVE, 9, vec![late(), look(1), late()], found(4, 1)),
        (NATIVE, 9, vec![late(), Turn::fails(), late()], found(4, 0)),
        (
            NATIVE,
            9,
            vec![calls(&["k8s.silent", "k8s.silent"])],
            found(2, 2),
        ),
        // Time-outs are counted before the next iteration; after the last one there is none.
        (NATIVE, 2, vec![late(), late()], {
            (
                broken(
                    "max iterations (2) reached with last interaction failed: broke",
                    StopReason::MaxIterations,
                ),
                2,
                0,
            )
        }),
    ]);
    let simulation = Simulation::new(NATIVE, 9, vec![]);
    let failed_call = failed(
        &simulation.replay(Vec::<Entry>::new()),
        "max_retries",
        CallError {
            message: "upstream request timed out",
            timeout: false,
        },
    );
    assert!(
        matches!(
            failed_call.first(),
            Some(Entry::Failed { timeout: true, .. })
        ),
        "{failed_call:?}"
    );
}

#[test]
fn at_a_limit_the_conclusion_is_forced_unless_the_last_model_call_failed() {
    let by = |reason| completed(FOUND, reason);
    let max = StopReason::MaxIterations;
    let refused = "max iterations (1) reached with last interaction failed: broke";
    let conclusion = "forced conclusion LLM call failed";
    let repeated = |asked| {
        (
            completed("Final Answer: Cause: x", StopReason::RepeatedCalls),
            asked,
            3,
        )
    };
    assert_flows(vec![
        (REACT, 5, (1..=5).map(look).collect(), (by(max), 6, 5)),
        (REACT, 1, vec![text("Hm.")], (by(max), 2, 0)),
        (REACT, 1, vec![text("")], (by(max), 2, 0)),
        (
            REACT,
            1,
            vec![text("Action: k8s.silent\nAction Input: {}")],
            (by(max), 2, 1),
        ),
        (REACT, 1, vec![Turn::fails()], (broken(refused, max), 1, 0)),
        (REACT, 1, vec![look(1), Turn::fails()], {
            (
                broken(&format!("{conclusion}: broke"), StopReason::Error),
                2,
                1,
            )
        }),
        (REACT, 1, vec![look(1), text(""), text("")], {
            (
                broken(
                    &format!("{conclusion}: the model gave an empty answer again"),
                    StopReason::Error,
                ),
                3,
                1,
            )
        }),
        (REACT, 1, vec![text(""), text("")], (by(max), 3, 0)),
        (NATIVE, 9, vec![calls(&["k8s.get"]); 4], repeated(5)),
        // Calls in the conclusion are ignored; if it has nothing else, the model is asked again.
        (NATIVE, 9, vec![calls(&["k8s.get"]); 5], repeated(6)),
    ]);
    for (said, analysis) in [
        ("Thought: sure\nFinal Answer: The disk.", "The disk."),
        (
            "Thought: It is the disk.\nAction: k8s.get\nAction Input: {}",
            "It is the disk.",
        ),
        ("It is the disk.", "It is the disk."),
    ] {
        assert_eq!(
            flow(&Simulation::new(REACT, 1, vec![look(1), text(said)])),
            (completed(analysis, max), 2, 1),
            "{said}"
        );
    }
}

#[test]
fn tokens_that_are_used_up_are_a_limit_too() {
    // An answer costs 10 tokens.
    let spending = |max_tokens, turns| {
        let mut simulation = Simulation::new(NATIVE, 9, turns);
        simulation.limits.max_tokens = max_tokens;
        flow(&simulation)
    };
    let looks = || vec![look(1), look(2), look(3)];
    let forced = completed("Final Answer: Cause: x", StopReason::Budget);
    assert_eq!(spending(10, vec![look(1), text("Cause: x")]).1, 2);
    assert_eq!(spending(11, looks()).2, 2);
    assert_eq!(spending(20, looks()).2, 2);
    assert_eq!(spending(30, looks()), (forced, 4, 3));
    assert_eq!(
        spending(0, looks()).0,
        completed("Final Answer: Cause: x", StopReason::FinalAnswer)
    );
    let error = "token budget (20) reached with last interaction failed: the model gave an empty answer again";
    assert_eq!(
        spending(20, vec![text(""), text("")]),
        (broken(error, StopReason::Budget), 2, 0)
    );
}

#[test]
fn a_failed_synthesis_falls_back_to_the_findings_of_the_stage_before() {
    let given_up = || Outcome::Completed {
        analysis: "found before".to_owned(),
        reason: StopReason::SynthesisFailed,
        mark: Some(Mark::NotCombined),
        review: None,
    };
    let permanent = || Turn::Fails {
        code: "credentials",
        timeout: false,
    };
    let of = |context: Option<&str>, turns| {
        let context = context.map(str::to_owned);
        flow(&Simulation {
            context,
            ..Simulation::new(SYNTHESIS, 1, turns)
        })
    };
    let twice = || vec![Turn::fails(), Turn::times_out()];
    assert_eq!(of(Some("found before"), twice()), (given_up(), 2, 0));
    assert_eq!(
        of(Some("found before"), vec![permanent()]),
        (given_up(), 1, 0)
    );
    assert_eq!(
        of(Some("found before"), vec![text(""); 4]),
        (given_up(), 3, 0)
    );
    assert_eq!(
        of(
            Some("found before"),
            vec![Turn::fails(), text(""), Turn::fails()]
        ),
        (given_up(), 3, 0)
    );
    let error = "synthesis LLM call failed: broke";
    assert_eq!(of(None, twice()), (broken(error, StopReason::Error), 2, 0));
    assert_eq!(
        of(None, vec![permanent()]),
        (broken(error, StopReason::Error), 1, 0)
    );
    assert_flows(vec![
        (
            Strategy::SingleCall,
            9,
            vec![Turn::fails()],
            (broken("broke", StopReason::Error), 1, 0),
        ),
        (
            NATIVE,
            9,
            vec![look(1), permanent()],
            (broken("broke", StopReason::Error), 2, 1),
        ),
    ]);
}

/// Role, call ids and the beginning of each message after the prompts.
fn conversation(simulation: &Simulation) -> Vec<(Role, Vec<String>, String)> {
    let written = simulation.run(Vec::new());
    let messages = simulation
        .replay(journal(&written))
        .messages()
        .into_iter()
        .skip(2);
    messages
        .map(|message| {
            let ids = message
                .tool_calls
                .iter()
                .map(|call| call.id.clone())
                .chain(message.tool_call_id)
                .collect();
            (
                message.role,
                ids,
                message.content.chars().take(34).collect(),
            )
        })
        .collect()
}

#[test]
fn a_native_conversation_has_one_tool_message_per_call_in_order() {
    let row = |role, call_ids: &[&str], content: &str| {
        let call_ids: Vec<String> = call_ids.iter().map(|id| (*id).to_owned()).collect();
        (role, call_ids, content.to_owned())
    };
    let simulation = Simulation::new(
        NATIVE,
        9,
        vec![Turn::says(
            "Look",
            "hm",
            &["k8s.get", "no.such", "k8s.restart"],
        )],
    );
    let one = "same";
    let two = "call-1-2";
    let three = "call-1-3";

    let expected = [
        row(Role::Assistant, &[one, two, three], "Look"),
        row(Role::Tool, &[one], "    so it is"),
        row(Role::Tool, &[two], "    Error: unknown tool 'no__such'"),
        row(Role::Tool, &[three], "    so it is"),
        row(Role::Assistant, &[], "Final Answer: Cause: x"),
    ];
    assert_eq!(conversation(&simulation), expected);
}

#[test]
fn a_call_whose_id_an_earlier_answer_has_gets_a_new_one() {
    let simulation = Simulation::new(
        NATIVE,
        9,
        vec![calls(&["k8s.get"]), calls(&["k8s.restart"])],
    );
    let ids: Vec<_> = conversation(&simulation)
        .into_iter()
        .flat_map(|(_, ids, _)| ids)
        .collect();
    assert_eq!(ids, ["same", "same", "call-2-1", "call-2-1"]);
}

#[test]
fn an_empty_answer_and_the_third_same_call_get_feedback() {
    let shown = |strategy, turns| {
        let rows = conversation(&Simulation::new(strategy, 9, turns));
        rows.into_iter()
            .map(|(role, _, content)| (role, content))
            .collect::<Vec<_>>()
    };
    let row = |role, content: &str| (role, content.to_owned());
    let asked = [
        row(Role::Assistant, "(no answer)"),
        row(Role::User, "Your previous response was empty. "),
        row(Role::Assistant, "Final Answer: Cause: x"),
    ];
    for strategy in Strategy::ALL {
        assert_eq!(shown(strategy, vec![text(" \n")]), asked, "{strategy:?}");
    }
    let looked = [row(Role::Assistant, ""), row(Role::Tool, "    so it is")];
    let mut expected = [looked.clone(), looked.clone(), looked].concat();
    expected.push(row(Role::User, "You have now made the same call wi"));
    expected.extend([
        row(Role::Assistant, ""),
        row(Role::Tool, "    Error: this call was not run: "),
    ]);
    expected.extend([
        row(Role::User, "conclude"),
        row(Role::Assistant, "Final Answer: Cause: x"),
    ]);
    assert_eq!(shown(NATIVE, vec![calls(&["k8s.get"]); 4]), expected);
}

#[test]
fn every_call_has_its_purpose_and_the_conclusion_comes_last() {
    let purposes = |strategy, max, turns| -> Vec<Purpose> {
        Simulation::new(strategy, max, turns)
            .run(Vec::new())
            .iter()
            .filter_map(|written| written.asked)
            .collect()
    };
    use Purpose::{Conclusion, Iteration, Synthesis};
    assert_eq!(
        purposes(NATIVE, 2, vec![look(1), look(2), text("")]),
        [Iteration, Iteration, Conclusion, Conclusion]
    );
    assert_eq!(
        purposes(SYNTHESIS, 1, vec![text("")]),
        [Synthesis, Synthesis]
    );
    assert_eq!(purposes(Strategy::SingleCall, 1, vec![]), [Iteration]);
    assert_eq!(
        [Iteration, Conclusion, Synthesis].map(Purpose::as_str),
        ["iteration", "forced_conclusion", "synthesis"]
    );
}

/// An answer with provider data, as it is absorbed after the entry `before`.
fn with_provider_data(
    strategy: Strategy,
    before: Option<Entry>,
    text: &str,
    tools: &[&str],
) -> Answer {
    let simulation = Simulation::new(strategy, 9, vec![]);
    let state = simulation.replay(before);
    let Turn::Says(mut answer) = Turn::says(text, "", tools) else {
        unreachable!()
    };
    let data = ProviderData {
        provider: "p".into(),
        model: "m".into(),
        format: "f".into(),
        payload: vec![1],
    };
    answer.provider_data = Some(Box::new(data));
    let Some(Entry::Answer(answer)) = absorb(&state, *answer).into_iter().next() else {
        panic!("no answer")
    };
    answer
}

#[test]
fn a_call_without_a_result_is_not_kept_in_the_provider_data() {
    for (strategy, concluding, text, tools, kept) in [
        (NATIVE, false, "t", &["k8s.get"][..], true),
        (NATIVE, true, "", &["k8s.get"], false),
        (NATIVE, true, "", &[], true),
        (REACT, false, "Thought: hm", &["k8s.get"], false),
        (REACT, false, "Thought: hm", &[], true),
        (SYNTHESIS, false, "", &["k8s.get"], false),
    ] {
        let before = concluding.then_some(Entry::Concluding {
            reason: StopReason::Budget,
        });
        let answer = with_provider_data(strategy, before, text, tools);
        assert_eq!(
            answer.provider_data.is_some(),
            kept,
            "{strategy:?} {concluding} {text:?} {tools:?}"
        );
    }
}

#[test]
fn shortening_the_conversation_forgives_only_a_full_context_window() {
    let simulation = Simulation::new(NATIVE, 9, vec![]);
    let failed = |code: &str| Entry::Failed {
        error: code.to_owned(),
        timeout: false,
        source: FailureSource::Model,
        code: code.to_owned(),
    };
    let mut state = simulation.replay(vec![failed("context_window_exceeded"), Entry::elided(1)]);
    assert_eq!((state.model_failure(), state.model_failures()), (None, 0));
    state.apply(failed("max_retries"));
    state.apply(Entry::elided(2));
    assert_eq!(
        (state.model_failure(), state.model_failures()),
        (Some("max_retries"), 1)
    );
}

#[test]
fn a_result_that_was_removed_may_be_fetched_again() {
    let mut journal = Vec::new();
    for n in 1..=4 {
        let Turn::Says(mut answer) = Turn::says("t", "", &["k8s.get"]) else {
            unreachable!()
        };
        answer.calls[0].id = format!("c{n}");
        let call = answer.calls[0].clone();
        journal.extend([
            Entry::Answer(*answer),
            answered(
                NATIVE,
                &call,
                ToolOutput {
                    content: "pods".into(),
                    is_error: false,
                    whole_bytes: 0,
                    facts: None,
                },
            ),
        ]);
        journal.push(Entry::elided(u32::try_from(journal.len()).unwrap()));
    }
    let state = Simulation::new(NATIVE, 9, vec![]).replay(journal);
    assert!(!state.refuses_calls() && !state.needs_repeat_feedback());
}

#[test]
fn the_error_of_a_tool_is_shown_as_it_is_stored() {
    let Turn::Says(answer) = Turn::says("t", "", &["k8s.get"]) else {
        unreachable!()
    };
    let entries = unanswered(
        NATIVE,
        &answer.calls[0],
        CallError {
            message: "re\0set",
            timeout: false,
        },
    );
    assert!(!format!("{entries:?}").contains("\\0"), "{entries:?}");
}
