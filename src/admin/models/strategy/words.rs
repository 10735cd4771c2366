//! Describes the result of a probe in sentences. Pure.

use super::{Interpretation, Outcome, Problem, TOOL};
use tarsy_core::vocabulary::ErrorCode;

/// The remark about a provider that replays recordings.
pub(super) const RECORDING: &str = "it replays recordings: no model is asked";

/// The sentences about the answers to one or two requests.
pub(super) fn notes(native: &Interpretation, react: Option<&Interpretation>) -> Vec<String> {
    let mut notes = vec![of_native(native)];
    notes.extend(react.map(of_react));
    let readings = || [Some(native), react].into_iter().flatten();
    if let Some(reading) = readings().find(|reading| reading.reasoning_tag.is_some()) {
        let tag = reading.reasoning_tag.as_deref().unwrap_or_default();
        notes.push(format!(
            "the server leaves reasoning in the text, between tags such as {tag}: tarsy takes it out and shows it as \
             reasoning, and neither a call nor an end in it counts"
        ));
    }
    if readings().any(|reading| reading.is_unsure) {
        notes.push(
            "its tags of reasoning have no certain reading: tarsy asks for such an answer again"
                .to_owned(),
        );
    }
    notes
}

fn of_native(reading: &Interpretation) -> String {
    let reason = reading.reason.as_deref().unwrap_or_default();
    match reading.outcome {
        Outcome::Called => "a structured call came whole, and its arguments fit the schema".to_owned(),
        Outcome::CalledFitted => {
            "a structured call came whole; tarsy has fitted its arguments to the schema, as in an investigation"
                .to_owned()
        }
        Outcome::UnfitArguments => format!("a structured call came; {}", first_lines(reason)),
        Outcome::OtherName => format!("a structured call came: {}", other_name(reading)),
        Outcome::CallInText => format!(
            "the server leaves the call in the text, in the markup {}: tarsy asks for a structured call once and never \
             runs one from a text; a parser for the model on its server (--tool-call-parser of vLLM) makes it one",
            markup(reading)
        ),
        Outcome::CallInReasoning => {
            format!("the call stands in the reasoning, in the markup {}, where none counts", markup(reading))
        }
        Outcome::NoCall => "a text came, and no call".to_owned(),
        Outcome::Empty => "neither a call nor a text came".to_owned(),
        Outcome::CutOff => format!("the answer did not count: {reason}"),
        Outcome::Failed => format!("the request with a tool failed: {reason}"),
    }
}

fn of_react(reading: &Interpretation) -> String {
    let reason = reading.reason.as_deref().unwrap_or_default();
    match reading.outcome {
        Outcome::Called => "with react, a call came as text, and its arguments fit the schema".to_owned(),
        Outcome::CalledFitted => {
            "with react, a call came as text; tarsy has fitted its arguments to the schema, as in an investigation"
                .to_owned()
        }
        Outcome::UnfitArguments => format!("with react, a call came as text; {}", first_lines(reason)),
        Outcome::OtherName => format!("with react, a call came as text: {}", other_name(reading)),
        Outcome::CallInText => {
            format!("with react, the call came in another form, in the markup {}", markup(reading))
        }
        Outcome::CallInReasoning => {
            format!("with react, the call stands in the reasoning, in the markup {}", markup(reading))
        }
        Outcome::NoCall if reason.is_empty() => "with react, a text came, and no call".to_owned(),
        Outcome::NoCall => format!("with react, a text came, and no call: {reason}"),
        Outcome::Empty => "with react, no text came".to_owned(),
        Outcome::CutOff => format!("with react, the answer did not count: {reason}"),
        Outcome::Failed => format!("the request without tools failed: {reason}"),
    }
}

fn other_name(reading: &Interpretation) -> String {
    let called = reading.called.as_deref().unwrap_or_default();
    format!(
        "it names {called:?} in place of {TOOL}, and an investigation would answer that there is no such tool"
    )
}

fn markup(reading: &Interpretation) -> &str {
    reading.markup.as_deref().unwrap_or_default()
}

/// A reason of several lines as one, without the request to the model at its end.
fn first_lines(reason: &str) -> String {
    let lines = reason.lines().filter(|line| !line.starts_with("Correct "));
    lines
        .map(|line| line.trim_start_matches("- "))
        .collect::<Vec<_>>()
        .join(" ")
}

/// A failure with its code and the provider's own words.
pub(super) fn of_problem(problem: &Problem) -> String {
    match problem.provider_status.as_str() {
        "" => format!("{}: {}", problem.code, problem.message),
        status => format!("{} ({status}): {}", problem.code, problem.message),
    }
}

/// The reason why a model that answers fits no strategy.
pub(super) fn none_fits(code: &str) -> &'static str {
    if code == ErrorCode::MaxTokens.as_str() {
        "the answer reached the limit of output tokens before a call"
    } else {
        "the model answers, and neither native-thinking nor react gets a call from it"
    }
}
