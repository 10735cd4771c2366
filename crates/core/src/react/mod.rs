//! The parser of the `ReAct` format (`Thought:`, `Action:`, `Action Input:`, `Final Answer:`), in which a model without
//! structured tool calls writes its calls as text.
//!
//! The parser accepts any text, in linear time, without a panic. This module owns the format: sections, the arguments
//! of a call, and the feedback on a malformed answer. It does not know the journal: `absorb.rs` stores the parsed
//! answer, so a replay does not parse again. The flow: lines → headers → quotation checks → sections → arguments or
//! feedback.

mod header;
mod inline_header;
mod quotes;
mod untrusted;
mod quote_check;
mod section_text;
mod sections;
mod several;
mod arguments;
mod feedback;
mod unknown_tool;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::quote_check::{QuoteCheck, QuotedHeader};
use super::plan::ToolSpec;
use super::tool_names;

pub use self::several::EarlierCall;
pub(crate) use self::several::{all_or_none, last_only, masked};
pub use self::untrusted::UntrustedHeaders;

/// The kind of an answer.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ReplyKind {
    /// A final answer.
    Final,
    /// A call of an offered tool.
    Action,
    /// A call of a tool that is not offered.
    UnknownTool,
    /// Neither a call nor a final answer.
    #[default]
    Malformed,
}

crate::words!(pub ReplyKind);

/// A parsed answer. `inspect reply` prints it as JSON; an absent part is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Reply {
    pub kind: ReplyKind,
    /// The reasoning.
    pub thought: Option<String>,
    /// `server.tool`, or the text in its place.
    pub action: Option<String>,
    /// The arguments as the model wrote them, with their indentation.
    pub action_input: Option<String>,
    /// The parsed arguments of a call.
    pub arguments: Option<Map<String, Value>>,
    /// The text of a final answer.
    pub final_answer: Option<String>,
    /// The sections with a header: `thought`, `action`, `action_input`, `final_answer`, in this order.
    pub found: Vec<&'static str>,
    /// The message to the model in place of a result.
    pub feedback: Option<String>,
    /// The reason for the feedback, for people, or the lines of the arguments that were not understood.
    #[serde(skip)]
    pub problem: Option<String>,
    /// The arguments to send: a JSON object, the text of the model where it wrote JSON.
    #[serde(skip)]
    pub arguments_text: Option<String>,
    /// The feedback asks the model back because its call or final answer is an exact quotation of an untrusted text.
    #[serde(skip)]
    pub quotes: bool,
    /// The actions before the last one, which counts alone unless the plan allows several.
    #[serde(skip)]
    pub earlier: Vec<EarlierCall>,
    /// One of several actions has no name, or no input.
    #[serde(skip)]
    pub has_incomplete: bool,
}

/// The untrusted texts of a conversation: an answer may quote them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuoteContext<'a> {
    pub untrusted: &'a UntrustedHeaders,
    /// The feedback on the previous answer was that it only quotes such a text.
    pub was_rejected_as_quotation: bool,
}

/// Parses an answer without its conversation. A tool is known if it is one of `tools`; without a list, if its name has
/// the form `server.tool`.
pub fn read(text: &str, tools: Option<&[ToolSpec]>) -> Reply {
    let check = QuoteCheck {
        tools,
        ..QuoteCheck::default()
    };
    parse(text, check)
}

/// Parses an answer of a conversation with untrusted texts. After the feedback that the previous answer only quotes, a
/// call or final answer that may have been a coincidence counts.
pub fn read_within(text: &str, tools: &[ToolSpec], context: QuoteContext<'_>) -> Reply {
    let check = QuoteCheck {
        untrusted: Some(context.untrusted),
        tools: Some(tools),
        is_confirmed: context.was_rejected_as_quotation,
    };
    parse(text, check)
}

/// An action with an input has precedence over a final answer, because the model cannot know the result of the call.
/// The exceptions: `Action: None`, and a call after a final answer that may change something, which does not run.
///
/// The sections and their tiers follow the reference implementations of this parser.
/// `docs/decisions/0019-departures.md` lists the rules that differ from them.
fn parse(text: &str, check: QuoteCheck<'_>) -> Reply {
    let tools = check.tools;
    let mut sections = sections::split(text, check);
    if sections.action.as_deref().unwrap_or_default().is_empty() && sections.action_input.is_some()
    {
        sections.action = inline_header::recovered_action(&sections.own)
            .filter(|name| name.matches('.').count() == 1 || is_offered(name, tools))
            .filter(|name| !check.mentions(name))
            .map(str::to_owned)
            .or(sections.action);
    }
    let empty = Reply {
        found: sections.found(),
        thought: sections.thought,
        ..Reply::default()
    };
    let action = filled(sections.action).map(|action| full_name(action, check));
    let final_answer = filled(sections.final_answer);
    match (action, sections.action_input, final_answer) {
        (Some(action), Some(_), Some(answer)) if inline_header::is_none(&action) => Reply {
            kind: ReplyKind::Final,
            final_answer: Some(answer),
            ..empty
        },
        (Some(action), Some(input), Some(_)) if sections.is_late && may_change(&action, tools) => {
            let problem = feedback::late(&action);
            Reply {
                action: Some(action),
                action_input: Some(input),
                ..malformed(empty, problem)
            }
        }
        (Some(action), Some(input), _) => {
            let earlier = sections.earlier.into_iter();
            let several = Reply {
                earlier: earlier
                    .map(|written| EarlierCall::new(written, check))
                    .collect(),
                has_incomplete: sections.has_incomplete,
                ..empty
            };
            call(several, action, input, tools)
        }
        (_, _, Some(answer)) => Reply {
            kind: ReplyKind::Final,
            final_answer: Some(answer),
            ..empty
        },
        (action, action_input, None) => {
            let problem = feedback::problem(text, &empty.found, sections.quoted);
            let quotes = sections.quoted >= Some(QuotedHeader::FinalAnswer);
            Reply {
                action,
                action_input,
                quotes,
                ..malformed(empty, problem)
            }
        }
    }
}

/// The same answer, whose final answer is not taken because a call in another form stands in it.
pub(crate) fn call_in_answer(reply: Reply) -> Reply {
    let empty = Reply {
        thought: reply.thought,
        found: reply.found,
        ..Reply::default()
    };
    malformed(empty, feedback::call_in_another_form())
}

fn malformed(empty: Reply, problem: feedback::Problem) -> Reply {
    Reply {
        feedback: Some(feedback::malformed(&problem)),
        problem: Some(problem.summary),
        ..empty
    }
}

fn filled(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// The full name of the tool that an action means. A name in another spelling does not count if the full name stands
/// as an action in an untrusted text: the model may have copied the call.
fn full_name(action: String, check: QuoteCheck<'_>) -> String {
    let meant = tool_names::only(&action, check.tools.unwrap_or_default());
    match meant {
        Some(tool) if tool.name != action && !check.mentions(&tool.name) => tool.name.clone(),
        Some(_) | None => action,
    }
}

/// Whether an offered tool may change something. Without a list no tool is known.
fn may_change(name: &str, tools: Option<&[ToolSpec]>) -> bool {
    let mut tools = tools.unwrap_or_default().iter();
    tools.any(|tool| tool.name == name && !tool.only_reads())
}

fn is_offered(name: &str, tools: Option<&[ToolSpec]>) -> bool {
    tools.is_some_and(|tools| tools.iter().any(|tool| tool.name == name))
}

fn call(empty: Reply, action: String, input: String, tools: Option<&[ToolSpec]>) -> Reply {
    let known = match tools {
        Some(_) => is_offered(&action, tools),
        None => inline_header::tool_name(&action).is_some(),
    };
    let arguments = arguments::parse(&input);
    let (kind, feedback, problem) = if known {
        (ReplyKind::Action, None, arguments.left_out)
    } else {
        let problem = format!("unknown tool '{}'", unknown_tool::called(&action));
        (
            ReplyKind::UnknownTool,
            Some(unknown_tool::unknown_tool(&action, tools)),
            Some(problem),
        )
    };
    Reply {
        kind,
        action: Some(action),
        action_input: Some(input),
        arguments_text: Some(arguments.text),
        arguments: Some(arguments.values),
        feedback,
        problem,
        ..empty
    }
}

/// A parsed last answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conclusion {
    /// The reasoning.
    pub thought: Option<String>,
    /// The final answer; without one the thought; without both the whole text.
    pub analysis: String,
}

/// Parses the answer to a forced conclusion; any text is accepted.
pub fn conclude(text: &str, untrusted: &UntrustedHeaders) -> Conclusion {
    let check = QuoteCheck {
        untrusted: Some(untrusted),
        tools: None,
        is_confirmed: true,
    };
    let sections = sections::split(text, check);
    let thought = filled(sections.thought);
    let analysis = filled(sections.final_answer)
        .or_else(|| thought.clone())
        .unwrap_or_else(|| text.trim().to_owned());
    Conclusion { thought, analysis }
}
