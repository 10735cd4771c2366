//! The check of a final answer before it counts, at most once in an execution: a model corrects itself by feedback
//! from outside (arXiv 2310.01798).
//!
//! The first answer is not lost: if no second one comes, it is the analysis. A call in the text is no fault of an
//! analysis but of an answer ([`verdict`](super::verdict)). What the answer that counts still lacks is its mark
//! ([`proof`](super::proof)).

use super::figures;
use super::proof::{Sources, sources};
use crate::execution::entry::{About, Answer, Entry, Fault, Usage};
use crate::execution::state::State;
use crate::plan::AnswerCheck;
use crate::summary::names_cause;

/// The fault, for the model.
fn message(fault: Fault, sources: &Sources) -> String {
    match fault {
        Fault::NotLooked => "You have called no tool, so nothing in it was looked at.".to_owned(),
        Fault::NoCause => "It has no line \"Cause:\".".to_owned(),
        Fault::NoSource => "Cause and Evidence cite no result.".to_owned(),
        Fault::UnknownSource => {
            let numbers: Vec<String> = sources
                .unknown
                .iter()
                .take(8)
                .map(ToString::to_string)
                .collect();
            format!("No result has the number {}.", numbers.join(" or "))
        }
        Fault::Unsupported => figures::message(&sources.unsupported),
    }
}

/// The faults of a final answer for which the model is asked once more; none if it may not be asked again. `usage` is
/// that of the answer. The answer to a question only has to cite what exists.
fn faults(state: &State, analysis: &str, sources: &Sources, usage: Usage) -> Vec<Fault> {
    let plan = state.plan();
    if state.was_asked_again
        || !may_ask_again(state, usage)
        || plan.answer_check == AnswerCheck::Off
    {
        return Vec::new();
    }
    let is_investigation = plan.citable.is_none() && !plan.tools.is_empty();
    let is_first = is_investigation && state.context().is_none();
    Fault::ALL
        .into_iter()
        .filter(|fault: &Fault| match fault {
            Fault::NotLooked => is_first && !state.has_looked,
            Fault::NoCause => is_investigation && !names_cause(analysis),
            Fault::NoSource => is_first && state.has_looked && sources.are_none(),
            Fault::UnknownSource => !sources.unknown.is_empty(),
            Fault::Unsupported => is_investigation && !sources.unsupported.is_empty(),
        })
        .collect()
}

/// Whether another answer of an iteration may follow.
fn may_ask_again(state: &State, usage: Usage) -> bool {
    let limits = state.plan().limits;
    let has_tokens =
        limits.max_tokens == 0 || state.usage().plus(usage).total() < limits.max_tokens;
    let has_turns = state.iteration() + 1 < limits.max_iterations;
    !state.next_is_last() && has_turns && has_tokens && state.stopped().is_none()
}

/// The message that names the faults of an answer and asks for the whole answer again; `None` if it counts.
pub(crate) fn ask_again(state: &State, analysis: &str, answer: &Answer) -> Option<Entry> {
    let sources = sources(state, analysis, Some(answer));
    let faults = faults(state, analysis, &sources, answer.usage);
    if faults.is_empty() {
        return None;
    }
    let named = faults
        .iter()
        .map(|fault| format!("- {}\n", message(*fault, &sources)));
    let content = format!(
        "This answer was not taken yet:\n{}Look again where that helps, or take the claim back. Then give the whole \
         answer once more, in its form. It is taken as it is.",
        named.collect::<String>()
    );
    Some(Entry::Feedback {
        content,
        about: Some(About::Answer(faults)),
    })
}
