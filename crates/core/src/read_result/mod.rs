//! The built-in tool `tarsy.read_result`: reads and searches the stored results of a session's tool calls.
//!
//! A model gets at most a part of a long result. The whole result is in the store, and this tool shows any part of it:
//! lines, bytes, or the places where a text occurs. A part is never longer than a result may be, so it is never cut
//! again. It also counts the matches of a text or a pattern, adds up their numbers, and reads the values of a JSON
//! result. The result of this tool itself cannot be read with it.

mod finder;
mod numbers;
mod page;
mod pointer;
mod request;
mod search;
mod tally;

use std::borrow::Cow;

use super::plan::{AgentPlan, ToolSpec};
use super::readable::cut::{ReadBack, bytes_of};

use pointer::{MAX_VALUES, Pointer};
use request::Part;

pub use request::{Request, Timeline};

/// The full name. No MCP server may have its first part.
pub const TOOL: &str = "tarsy.read_result";
/// The name of its function.
const FUNCTION: &str = "tarsy__read_result";
/// The first part of the name.
pub const SERVER: &str = "tarsy";

/// Bytes of the heading and of the note about the rest.
const FRAME_BYTES: usize = 200;

const DESCRIPTION: &str = include_str!("description.md");
const THREAD_DESCRIPTION: &str = include_str!("thread_description.md");

/// A stored result of a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResult {
    /// The full name of the tool.
    pub tool: String,
    /// The whole masked result; `None` for a call without one.
    pub text: Option<String>,
}

/// The tool, for an investigation.
pub fn spec() -> ToolSpec {
    described(DESCRIPTION.trim(), "")
}

/// The tool, for a follow-up question: it reads the results of the investigation, too.
pub fn thread_spec() -> ToolSpec {
    let timeline = r#", "timeline": {"type": "string", "enum": ["investigation", "now"], "description": "Whose event: investigation (the default) for the calls of the investigation, now for the calls of this conversation"}"#;
    described(
        &format!("{} {}", DESCRIPTION.trim(), THREAD_DESCRIPTION.trim()),
        timeline,
    )
}

fn described(description: &str, timeline: &str) -> ToolSpec {
    let parameters_schema = include_str!("schema.json")
        .trim()
        .replace(", \"timeline\": {}", timeline);
    ToolSpec {
        name: TOOL.to_owned(),
        original_name: None,
        description: description.to_owned(),
        parameters_schema,
        read_only: true,
        approval: None,
    }
}

/// Whether a tool is one of tarsy's own: it shows nothing of the world.
pub fn is_own(tool: &str) -> bool {
    tool.split_once('.')
        .is_some_and(|(server, _)| server == SERVER)
}

/// Whether an agent may call the tool.
pub fn is_offered(plan: &AgentPlan) -> bool {
    plan.tools.iter().any(|tool| tool.name == TOOL)
}

/// The way in which the model of an agent can read a whole result.
pub fn read_back(plan: &AgentPlan) -> ReadBack {
    if !is_offered(plan) {
        return ReadBack::No;
    }
    let is_function = plan.shown(TOOL) == FUNCTION;
    ReadBack::With(if is_function { FUNCTION } else { TOOL })
}

/// The text for the model of `plan`, not longer than one of its results. `has_time` says whether the call may go on; it
/// is asked again and again while a result is searched.
///
/// # Errors
/// When there is nothing to read; the text says why.
pub fn answer(
    request: &Request,
    stored: Option<&StoredResult>,
    plan: &AgentPlan,
    has_time: &dyn Fn() -> bool,
) -> Result<String, String> {
    let event = request.event;

    let StoredResult { tool, text } = stored.ok_or_else(|| {
        format!(
            "event {event} is no result of a tool call. The number of a result is in the line [event …] before it."
        )
    })?;
    if tool == TOOL {
        return Err(format!(
            "event {event} is itself a part that {} has shown: read the event that it names in its first line.",
            plan.shown(TOOL)
        ));
    }
    let text = text
        .as_deref()
        .ok_or_else(|| format!("the call of event {event} has no stored result."))?;
    let values = match &request.pointer {
        None => None,
        Some(pointer) => Some(pointer.values(text)?),
    };
    let source = WholeResult {
        event,
        tool: &plan.shown(tool),
        text: values.as_ref().map_or(text, |values| &values.text),
        labels: values.as_ref().map(|values| values.labels.as_slice()),
        pointer: request.pointer.as_ref().map(Pointer::given),
        max_bytes: bytes_of(plan.limits.max_tool_result_tokens).saturating_sub(FRAME_BYTES),
        has_time,
    };
    match &request.part {
        Part::Lines(lines) => page::lines(&source, *lines),
        Part::Bytes { from, count } => page::bytes(&source, *from, *count),
        Part::Search(search) => search::search(&source, search),
        Part::Tally(tally) => tally::tally(&source, tally),
    }
}

/// A result that is read: its text, or the values of a pointer as lines.
struct WholeResult<'a> {
    event: u32,
    tool: &'a str,
    text: &'a str,
    /// The words before each line, in the place of its number.
    labels: Option<&'a [String]>,
    pointer: Option<&'a str>,
    /// The longest part, without its heading.
    max_bytes: usize,
    has_time: &'a dyn Fn() -> bool,
}

impl WholeResult<'_> {
    fn heading(&self, part: &str) -> String {
        let pointer = self
            .pointer
            .map_or_else(String::new, |pointer| format!(", {pointer:?}"));
        let pointer = match self.labels {
            Some(labels) if labels.len() >= MAX_VALUES => {
                format!("{pointer}, its first {MAX_VALUES} values")
            }
            Some(_) | None => pointer,
        };
        format!("event {} ({}){pointer}, {part}\n", self.event, self.tool)
    }

    /// The words before the line of this number.
    fn label(&self, number: usize) -> Cow<'_, str> {
        let label = self
            .labels
            .and_then(|labels| labels.get(number.checked_sub(1)?));
        label.map_or_else(|| number.to_string().into(), |label| label.as_str().into())
    }
}

#[cfg(test)]
mod tests;
