//! Several actions in one answer: all of them run if they only read, otherwise none of them.
//!
//! Where the plan does not allow it, the last action counts, as in the reference implementations of this parser.

use super::feedback::{self, Problem};
use super::section_text::WrittenAction;
use super::{QuoteCheck, Reply, ReplyKind, arguments, full_name, malformed};
use crate::plan::ToolSpec;

/// An action before the last one of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierCall {
    /// `server.tool`, or the text in its place.
    pub action: String,
    /// The arguments to send: a JSON object.
    pub arguments: String,
}

impl EarlierCall {
    pub(super) fn new(written: WrittenAction, check: QuoteCheck<'_>) -> Self {
        Self {
            action: full_name(written.action, check),
            arguments: arguments::parse(&written.input).text,
        }
    }
}

/// The answer as its last action alone decides it.
pub(crate) fn last_only(reply: Reply) -> Reply {
    Reply {
        earlier: Vec::new(),
        has_incomplete: false,
        ..reply
    }
}

/// The answer with all of its actions. If one of several may change something, is no offered tool or is not complete,
/// none of them runs, and the model is asked back.
pub(crate) fn all_or_none(reply: Reply, tools: &[ToolSpec]) -> Reply {
    let has_one = reply.earlier.is_empty() && !reply.has_incomplete;
    if reply.kind != ReplyKind::Action || has_one {
        return last_only(reply);
    }
    match fault(&reply, tools) {
        None => reply,
        Some(problem) => refused(reply, problem),
    }
}

/// The same answer, of which no action runs because the mask has changed more than arguments.
pub(crate) fn masked(reply: Reply) -> Reply {
    refused(reply, feedback::several_masked())
}

fn refused(reply: Reply, problem: Problem) -> Reply {
    let empty = Reply {
        thought: reply.thought,
        found: reply.found,
        ..Reply::default()
    };
    malformed(empty, problem)
}

fn fault(reply: &Reply, tools: &[ToolSpec]) -> Option<Problem> {
    if reply.has_incomplete {
        return Some(feedback::several_incomplete());
    }
    let actions = reply.earlier.iter().map(|call| call.action.as_str());
    for action in actions.chain(reply.action.as_deref()) {
        match tools.iter().find(|tool| tool.name == action) {
            None => return Some(feedback::several_with_unknown(action)),
            Some(tool) if !tool.only_reads() => return Some(feedback::several_with_change(action)),
            Some(_) => {}
        }
    }
    None
}
