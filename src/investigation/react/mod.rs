//! `ReAct`: a model that has no tools of its own writes down what it wants, and this reads it.
//!
//! Text in, meaning out; any text is accepted, in linear time, and none panics. Owns the format: its sections, the
//! arguments of a call, what a model is told that missed it. Knows nothing of the journal: `absorb.rs` stores what was
//! understood, so a replay never comes here.

mod arguments;
mod quote_check;
mod feedback;
mod header;
mod inline_header;
mod unknown_tool;
mod untrusted;
mod section_text;
mod quotes;
mod sections;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::quote_check::{QuoteCheck, QuotedHeader};
use self::sections::Sections;
use super::plan::ToolSpec;

pub(super) use self::header::is_blank;
pub use self::untrusted::UntrustedHeaders;

/// What an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyKind {
    /// The last answer.
    Final,
    /// A call of a tool.
    Action,
    /// A call of something that is not offered.
    UnknownTool,
    /// None of these.
    Malformed,
}

impl ReplyKind {
    /// The word in the journal and in the metadata of an event.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Final => "final",
            Self::Action => "action",
            Self::UnknownTool => "unknown_tool",
            Self::Malformed => "malformed",
        }
    }
}

/// What was understood of an answer. As JSON it is what `inspect reply` prints; what is absent is null.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reply {
    /// What the answer is.
    pub kind: ReplyKind,
    /// The reasoning.
    pub thought: Option<String>,
    /// `server.tool`, or what stands there instead.
    pub action: Option<String>,
    /// The arguments as the model wrote them, with their indentation.
    pub action_input: Option<String>,
    /// The arguments as they were understood; of a call only.
    pub arguments: Option<Map<String, Value>>,
    /// Of the last answer only.
    pub final_answer: Option<String>,
    /// The sections that have a header: `thought`, `action`, `action_input`, `final_answer`, in this order.
    pub found: Vec<&'static str>,
    /// The whole message that the model gets instead of a result.
    pub feedback: Option<String>,
    /// For people, in a few words: why there is feedback, or what of the arguments was left out.
    #[serde(skip)]
    pub problem: Option<String>,
    /// The arguments as they are sent: a JSON object, the model's own text where it is one.
    #[serde(skip)]
    pub arguments_text: Option<String>,
    /// There is feedback because its call or its end came from outside word for word: the model is asked back.
    #[serde(skip)]
    pub quotes: bool,
}

/// The untrusted texts of a conversation: an answer may quote them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuoteContext<'a> {
    pub untrusted: &'a UntrustedHeaders,
    /// The feedback on the previous answer was that it only quotes such a text.
    pub asked_back: bool,
}

/// Reads an answer of which nothing is known but its text. A tool is known when it is one of `tools`; without a list,
/// when it has the form `server.tool`.
pub fn read(text: &str, tools: Option<&[ToolSpec]>) -> Reply {
    understood(text, QuoteCheck { untrusted: None, tools, is_confirmed: false })
}

/// Reads an answer of a conversation into which these texts came from outside. `asked_back`: the model was told of the
/// answer before that it only quotes; what may have been a coincidence is meant now.
pub fn read_within(text: &str, tools: &[ToolSpec], context: QuoteContext<'_>) -> Reply {
    let QuoteContext { untrusted, asked_back } = context;
    understood(text, QuoteCheck { untrusted: Some(untrusted), tools: Some(tools), is_confirmed: asked_back })
}

/// An action that has its input wins over a final answer: the model cannot know how the call goes. Only one that says
/// that it is none (`Action: None`) does not; and behind a final answer one that may change something is not run.
///
/// The sections and their tiers are those of the models of this parser; `sections.rs`, `marks.rs` and `arguments/` name
/// the rule that each of their steps follows, `docs/decisions/0019-departures.md` those that are this project's own.
fn understood(text: &str, check: QuoteCheck<'_>) -> Reply {
    let tools = check.tools;
    let mut sections = sections::of(text, check);
    if sections.action.as_deref().unwrap_or_default().is_empty() && sections.action_input.is_some() {
        sections.action = inline_header::recovered_action(&sections.own)
            .filter(|name| name.matches('.').count() == 1 || is_offered(name, tools))
            .filter(|name| !check.mentions(name))
            .map(str::to_owned)
            .or(sections.action);
    }
    let found = sections.found();
    let Sections { thought, action, action_input, final_answer, is_late, quoted, .. } = sections;
    let empty = Reply {
        kind: ReplyKind::Malformed,
        thought,
        action: None,
        action_input: None,
        arguments: None,
        final_answer: None,
        found,
        feedback: None,
        problem: None,
        arguments_text: None,
        quotes: false,
    };
    let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
    match (filled(action), action_input, filled(final_answer)) {
        (Some(action), Some(_), Some(answer)) if inline_header::is_none(&action) => {
            Reply { kind: ReplyKind::Final, final_answer: Some(answer), ..empty }
        }
        (Some(action), Some(input), Some(_)) if is_late && may_change(&action, tools) => {
            let problem = feedback::late(&action);
            Reply { action: Some(action), action_input: Some(input), ..malformed(empty, problem) }
        }
        (Some(action), Some(input), _) => call(empty, action, input, tools),
        (_, _, Some(answer)) => Reply { kind: ReplyKind::Final, final_answer: Some(answer), ..empty },
        (action, action_input, None) => {
            let problem = feedback::problem(text, &empty.found, quoted);
            let quotes = quoted.is_some_and(|quoted| quoted >= QuotedHeader::FinalAnswer);
            Reply { action, action_input, quotes, ..malformed(empty, problem) }
        }
    }
}

fn malformed(empty: Reply, problem: feedback::Problem) -> Reply {
    Reply { feedback: Some(feedback::malformed(&problem)), problem: Some(problem.summary), ..empty }
}

/// Whether a tool is offered that may change something. Without a list nothing is known of any.
fn may_change(name: &str, tools: Option<&[ToolSpec]>) -> bool {
    tools.is_some_and(|tools| tools.iter().any(|tool| tool.name == name && !tool.read_only))
}

fn is_offered(name: &str, tools: Option<&[ToolSpec]>) -> bool {
    tools.is_some_and(|tools| tools.iter().any(|tool| tool.name == name))
}

fn call(empty: Reply, action: String, input: String, tools: Option<&[ToolSpec]>) -> Reply {
    let known = match tools {
        Some(_) => is_offered(&action, tools),
        None => inline_header::tool_name(&action).is_some(),
    };
    let arguments = arguments::of(&input);
    let (kind, feedback, problem) = if known {
        (ReplyKind::Action, None, arguments.left_out)
    } else {
        let problem = format!("unknown tool '{}'", unknown_tool::called(&action));
        (ReplyKind::UnknownTool, Some(unknown_tool::unknown_tool(&action, tools)), Some(problem))
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

/// The answer after which nothing comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conclusion {
    /// The reasoning.
    pub thought: Option<String>,
    /// The final answer; without one the thought; without both the text as it is.
    pub analysis: String,
}

/// Reads an answer that has to be the last one, whatever it is.
pub fn conclude(text: &str) -> Conclusion {
    conclude_within(text, &UntrustedHeaders::default())
}

/// The same of a conversation into which these texts came from outside.
pub fn conclude_within(text: &str, untrusted: &UntrustedHeaders) -> Conclusion {
    let check = QuoteCheck { untrusted: Some(untrusted), tools: None, is_confirmed: true };
    let Sections { thought, final_answer, .. } = sections::of(text, check);
    let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
    let thought = filled(thought);
    let analysis = filled(final_answer).or_else(|| thought.clone()).unwrap_or_else(|| text.trim().to_owned());
    Conclusion { thought, analysis }
}
