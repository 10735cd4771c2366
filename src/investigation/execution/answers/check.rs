//! The check of a final answer before it counts, at most once in an execution: a model corrects itself by feedback
//! from outside (arXiv 2310.01798).
//!
//! The first answer is not lost: if no second one comes, it is the analysis. A call in the text is no fault of an
//! analysis but of an answer ([`verdict`](super::verdict)).

use crate::investigation::execution::entry::{About, Entry, Fault, Usage};
use crate::investigation::execution::state::State;
use crate::investigation::plan::AnswerCheck;
use crate::investigation::summary::names_cause;

/// The fault, for the model.
fn message(fault: Fault) -> &'static str {
    match fault {
        Fault::NotLooked => "You have called no tool, so nothing in it was looked at.",
        Fault::NoCause => "It has no line \"Cause:\".",
    }
}

/// The faults of a final answer for which the model is asked once more; none if it may not be asked again. `usage` is
/// that of the answer.
pub fn faults(state: &State, analysis: &str, usage: Usage) -> Vec<Fault> {
    if state.was_asked_again() || !may_ask_again(state, usage) {
        return Vec::new();
    }
    let (plan, tools) = (state.plan(), state.plan().tools.as_slice());
    let is_checked = plan.answer_check == AnswerCheck::Once && !tools.is_empty();
    let is_found = |fault: &Fault| match fault {
        Fault::NotLooked => is_checked && !state.has_looked() && state.context().is_none(),
        Fault::NoCause => is_checked && !names_cause(analysis),
    };
    Fault::ALL.into_iter().filter(is_found).collect()
}

/// Whether another answer of an iteration may follow.
fn may_ask_again(state: &State, usage: Usage) -> bool {
    let limits = state.plan().limits;
    let has_tokens = limits.max_tokens == 0 || state.usage().plus(usage).total() < limits.max_tokens;
    let has_turns = state.iteration() + 1 < limits.max_iterations;
    !state.next_is_last() && has_turns && has_tokens && state.stopped().is_none()
}

/// The message that names the faults and asks for the whole answer again.
pub fn ask_again(faults: Vec<Fault>) -> Entry {
    let named = faults.iter().map(|fault| format!("- {}\n", message(*fault)));
    let content = format!(
        "This answer was not taken yet:\n{}Look again where that helps, or take the claim back. Then give the whole \
         answer once more, in its form. It is taken as it is.",
        named.collect::<String>()
    );
    Entry::Feedback { content, about: Some(About::Answer(faults)) }
}
