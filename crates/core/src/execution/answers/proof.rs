//! The sources of an analysis, and the mark for missing ones.

use super::figures::{Unsupported, unsupported};
use crate::execution::cited_events::{cited, unknown};
use crate::execution::entry::{Answer, Entry, Mark};
use crate::execution::state::State;
use crate::plan::AnswerCheck;
use crate::summary::{fields, names_cause};
use crate::tool_names::function;

/// The sources of an analysis.
#[derive(Debug)]
pub(super) struct Sources {
    /// Numbers of its cause and evidence that are no results.
    pub(super) unknown: Vec<u64>,
    /// Its numbers and times that no source has.
    pub(super) unsupported: Vec<Unsupported>,
    has_known: bool,
    /// Results have numbers, so a source is missing if none is cited.
    are_numbered: bool,
}

impl Sources {
    /// Whether the analysis cites no result.
    pub(super) fn are_none(&self) -> bool {
        self.are_numbered && !self.has_known
    }
}

/// The sources of an analysis: the numbers of results, the names of tools that have answered, and what the provider's
/// own tools have found. The numbers in its cause and its evidence count. It stands in `answer`, unless that is
/// an entry already.
pub(super) fn sources(state: &State, analysis: &str, answer: Option<&Answer>) -> Sources {
    let Some(known) = state.citable() else {
        return Sources {
            unknown: Vec::new(),
            unsupported: Vec::new(),
            has_known: false,
            are_numbered: false,
        };
    };
    let claims = fields(analysis).claims(analysis);
    let sourceless = state.sourceless_events();
    let has_number = cited(&claims)
        .into_iter()
        .map(u64::from)
        .any(|number| known.contains(&number) && !sourceless.contains(&number));
    let has_known = has_number
        || state.answered_tools().any(|tool| names(&claims, tool))
        || has_native_work(state, answer);
    // What the provider's own tools have found is not shown as it is.
    let is_checked = has_known && !has_native_work(state, answer);
    Sources {
        unknown: unknown(&claims, &known),
        unsupported: if is_checked {
            unsupported(state, analysis)
        } else {
            Vec::new()
        },
        has_known,
        are_numbered: true,
    }
}

/// Whether a text has the name of a tool in brackets, as it is called or as it is written.
pub(super) fn names(text: &str, tool: &str) -> bool {
    text.contains(&format!("[{tool}]")) || text.contains(&format!("[{}]", function(tool)))
}

/// Whether the provider's own tools have run code, searched, or read a page.
pub(in crate::execution) fn has_native_work(state: &State, answer: Option<&Answer>) -> bool {
    let mut answers = state
        .entries()
        .iter()
        .filter_map(Entry::answer)
        .chain(answer);
    answers.any(|answer| !answer.code_executions.is_empty() || !answer.groundings.is_empty())
}

/// The mark of an analysis that counts: what it lacks of a proof. The answer to a question rests on the report, too.
pub fn mark(state: &State, analysis: &str, answer: Option<&Answer>) -> Option<Mark> {
    let plan = state.plan();
    if plan.answer_check == AnswerCheck::Off {
        return None;
    }
    let sources = sources(state, analysis, answer);
    let is_question = plan.citable.is_some();
    let has_context = state.context().is_some();
    let has_native_work = has_native_work(state, answer);
    let has_looked = state.has_looked || has_native_work;
    let has_tools = plan.strategy.uses_tools() && !plan.tools.is_empty();
    Mark::ALL
        .into_iter()
        .rev()
        .filter(|mark: &Mark| !is_question || *mark == Mark::UnknownSource)
        .find(|mark: &Mark| match mark {
            Mark::NoTools => !has_context && !has_looked && !has_tools,
            Mark::NotLooked => !has_context && !has_looked && has_tools,
            Mark::NoSource => sources.are_none(),
            Mark::CallsFailed => {
                !has_context && !has_native_work && state.has_looked && !state.has_answer_of_tool()
            }
            Mark::UnknownSource => !sources.unknown.is_empty(),
            Mark::Unsupported => !sources.unsupported.is_empty(),
            Mark::NoCause => !names_cause(analysis),
            Mark::Unknown
            | Mark::NotCombined
            | Mark::Weakened
            | Mark::Disputed
            | Mark::MissingServer
            | Mark::OfStage
            | Mark::Incomplete => false,
        })
}
