//! Tests of the interpretation of answers to a probe.

use proptest::prelude::*;

use super::reading::{native, react as of_text};
use super::*;
use tarsy_core::execution::entry::{Answer as ModelAnswer, Finish};

const ARGUMENTS: &str = r#"{"word": "ready", "numbers": [1, 2, 3]}"#;
const MARKUP: &str = "<tool_call>\n{\"name\": \"tarsy__echo\", \"arguments\": {}}\n</tool_call>";

fn observed(text: &str, calls: &[&str], finish: Finish) -> Observed {
    let calls = calls
        .iter()
        .map(|name| ToolCall {
            id: String::new(),
            tool: (*name).to_owned(),
            arguments: ARGUMENTS.to_owned(),
            read_only: false,
        })
        .collect();
    Observed {
        answer: ModelAnswer {
            text: text.to_owned(),
            calls,
            finish,
            ..ModelAnswer::default()
        },
        ..Observed::default()
    }
}

fn unfit() -> ArgumentFit {
    ArgumentFit::Unfit(
        "the arguments do not fit:\n- /word: 7 is not a text\nCorrect the arguments.".to_owned(),
    )
}

#[test]
fn an_answer_with_a_tool_shows_a_call_or_why_there_is_none() {
    let fit = |fit: ArgumentFit| Some(fit);
    for (text, calls, finish, arguments, expected) in [
        (
            "",
            &[TOOL][..],
            Finish::ToolCalls,
            fit(ArgumentFit::AsWritten),
            Outcome::Called,
        ),
        (
            "I call it.",
            &[TOOL],
            Finish::ToolCalls,
            fit(ArgumentFit::AsWritten),
            Outcome::Called,
        ),
        (
            MARKUP,
            &[TOOL],
            Finish::ToolCalls,
            fit(ArgumentFit::AsWritten),
            Outcome::Called,
        ),
        (
            "",
            &["other", TOOL],
            Finish::ToolCalls,
            fit(ArgumentFit::Fitted),
            Outcome::CalledFitted,
        ),
        (
            "",
            &[TOOL],
            Finish::Other,
            fit(ArgumentFit::AsWritten),
            Outcome::Called,
        ),
        (
            "",
            &[TOOL],
            Finish::ToolCalls,
            fit(unfit()),
            Outcome::UnfitArguments,
        ),
        (
            "",
            &["echo"],
            Finish::ToolCalls,
            fit(ArgumentFit::AsWritten),
            Outcome::OtherName,
        ),
        (
            "",
            &[TOOL],
            Finish::MaxTokens,
            fit(ArgumentFit::AsWritten),
            Outcome::CutOff,
        ),
        (
            "",
            &[TOOL],
            Finish::Safety,
            fit(ArgumentFit::AsWritten),
            Outcome::CutOff,
        ),
        (MARKUP, &[], Finish::Stop, None, Outcome::CallInText),
        (MARKUP, &[], Finish::MaxTokens, None, Outcome::CutOff),
        ("Hello.", &[], Finish::Stop, None, Outcome::NoCall),
        ("\u{200b}\n", &[], Finish::Stop, None, Outcome::Empty),
        ("Hello.", &[], Finish::Other, None, Outcome::CutOff),
    ] {
        let reading = native(&observed(text, calls, finish), arguments.as_ref());
        assert_eq!(reading.outcome, expected, "{text:?} {calls:?} {finish:?}");
    }
    let thought = Observed {
        answer: ModelAnswer {
            thinking: MARKUP.to_owned(),
            ..ModelAnswer::default()
        },
        reasoning_tag: Some("<think>".to_owned()),
        ..Observed::default()
    };
    let reading = native(&thought, None);
    assert_eq!(
        (reading.outcome, reading.markup.as_deref()),
        (Outcome::CallInReasoning, Some("<tool_call>"))
    );
    let notes = words::notes(&reading, None);
    assert!(
        notes
            .last()
            .unwrap()
            .contains("between tags such as <think>: tarsy takes it out"),
        "{notes:?}"
    );
}

#[test]
fn an_answer_in_the_form_of_react_shows_a_call_or_why_there_is_none() {
    let action = |name: &str| format!("Thought: now\nAction: {name}\nAction Input: {ARGUMENTS}");
    for (text, finish, arguments, expected) in [
        (
            action(TOOL),
            Finish::Stop,
            Some(ArgumentFit::AsWritten),
            Outcome::Called,
        ),
        (
            action(TOOL),
            Finish::Stop,
            Some(unfit()),
            Outcome::UnfitArguments,
        ),
        (
            action(TOOL),
            Finish::MaxTokens,
            Some(ArgumentFit::AsWritten),
            Outcome::CutOff,
        ),
        (
            action("tarsy.repeat"),
            Finish::Stop,
            None,
            Outcome::OtherName,
        ),
        (
            "Final Answer: ready 1 2 3".to_owned(),
            Finish::Stop,
            None,
            Outcome::NoCall,
        ),
        ("Hello.".to_owned(), Finish::Stop, None, Outcome::NoCall),
        (MARKUP.to_owned(), Finish::Stop, None, Outcome::CallInText),
        (String::new(), Finish::Stop, None, Outcome::Empty),
    ] {
        let reply = react::read(&text, Some(&[tool()]));
        let reading = of_text(&observed(&text, &[], finish), &reply, arguments.as_ref());
        assert_eq!(reading.outcome, expected, "{text:?} {finish:?}");
    }
}

#[test]
fn the_reason_for_refused_arguments_is_one_line_for_people() {
    let reading = native(&observed("", &[TOOL], Finish::ToolCalls), Some(&unfit()));
    let notes = words::notes(&reading, None);
    assert_eq!(
        notes,
        ["a structured call came; the arguments do not fit: /word: 7 is not a text"]
    );
}

proptest! {
    #[test]
    fn a_call_counts_only_as_in_an_investigation(
        text in prop_oneof![Just(String::new()), Just(MARKUP.to_owned()), "[a-z <>/]{0,40}"],
        calls in proptest::collection::vec(prop_oneof![Just(TOOL), Just("k8s.pods"), Just("")], 0..3),
        finish in proptest::sample::select(Finish::ALL.to_vec()),
        is_fit in any::<bool>(),
    ) {
        let seen = observed(&text, &calls, finish);
        let fit = called(&seen).map(|_| if is_fit { ArgumentFit::AsWritten } else { unfit() });
        let reading = native(&seen, fit.as_ref());
        let is_whole = matches!(finish, Finish::Stop | Finish::ToolCalls | Finish::Other);
        prop_assert_eq!(reading.fits(), is_whole && calls.contains(&TOOL) && is_fit, "{:?}", reading);
        let notes = words::notes(&reading, Some(&reading));
        prop_assert!(notes.iter().all(|note| !note.is_empty() && !note.contains('\n')), "{:?}", notes);
    }
}
