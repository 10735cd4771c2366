//! The entries for the result of a tool call, and for a call without a result.
//!
//! A model with bound tools gets a tool result; in the `ReAct` format it gets an observation, which is a user message.

use std::borrow::Cow;

use super::entry::{Entry, FailureSource, NotSent, ToolCall, ToolResult};
use crate::plan::{AgentPlan, Strategy, ToolSpec};
use crate::readable::presentation::Facts;
use crate::tool_names::{self, Meant};

/// The text of a tool's reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolOutput {
    pub content: String,
    /// The tool reports a failure.
    pub is_error: bool,
    /// The size of the whole result, as in [`ToolResult`].
    pub whole_bytes: u64,
    /// The facts of the result, as in [`ToolResult`].
    pub facts: Option<Facts>,
}

impl ToolOutput {
    /// The text of a call that has failed.
    fn error(content: String) -> Self {
        Self {
            content,
            is_error: true,
            whole_bytes: 0,
            facts: None,
        }
    }
}

/// The reason why a model or tool call gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallError<'a> {
    pub message: &'a str,
    pub timeout: bool,
}

/// Prefix of every observation.
const OBSERVATION: &str = "Observation: ";

/// The result of a call whose outcome is unknown.
const OUTCOME_UNKNOWN: &str = "the connection was lost after this call was sent. Its outcome is unknown and it is \
    not sent again. Check the present state before you decide what to do.";

/// The result of a call whose original arguments are not known any more.
pub(super) const NOT_SENT: &str = "this call was not sent: its arguments hold something that is masked, and the worker that knew \
    them has stopped. Make it again if it is still needed.";

/// The result of a call that the model repeated too often.
pub(super) const NOT_RUN_AGAIN: &str = "this call was not run: it is the same, with the same arguments, as the last three, and \
    their results stand above.";

/// The result of a call of a tool that the model's provider refuses.
pub(super) const REFUSED_BY_PROVIDER: &str = "this call was not run: the tool is not available, because the provider of \
    your model refuses its definition. Work with the other tools.";

/// The result of a call for which no time was left.
const NO_TIME_LEFT: &str =
    "not sent, no time left: the calls before it used up the time of this iteration";

/// The result of a read-only call that the end of the time has cut off.
pub const NOT_FINISHED: &str = "not finished: the time of this investigation is used up";

/// The result of a call whose turn comes after the end of the time.
pub(super) const NOT_SENT_TIME_USED_UP: &str =
    "not sent: the time of this investigation is used up";

/// The entry for the output of a tool.
pub fn answered(strategy: Strategy, call: &ToolCall, output: ToolOutput) -> Entry {
    let content = match (strategy.writes_calls(), output.is_error) {
        (false, _) => output.content,
        (true, false) => format!("{OBSERVATION}{}", output.content),
        (true, true) => format!("{}{}", failed_execution(&call.tool), output.content),
    };
    entry(strategy, call, ToolOutput { content, ..output })
}

/// The entries for a call without an answer: a result for the model, and the failure.
pub fn unanswered(strategy: Strategy, call: &ToolCall, error: CallError<'_>) -> Vec<Entry> {
    let CallError { message, timeout } = error;
    // PostgreSQL stores no NUL, and a replay has to read the same text as this run.
    let error = message.replace('\0', "");
    let failed = Entry::Failed {
        error: format!("{}: {error}", call.tool),
        timeout: timeout || is_timeout(&error),
        source: FailureSource::Tool,
        code: String::new(),
    };
    let observed = if strategy.writes_calls() {
        format!("Tool execution failed: {error}")
    } else {
        error
    };
    vec![refusal(strategy, call, &observed), failed]
}

/// The entries for a call that did not reach its server.
pub fn not_reached(strategy: Strategy, call: &ToolCall, error: CallError<'_>) -> Vec<Entry> {
    unsent(unanswered(strategy, call, error), NotSent::Unavailable)
}

/// The entry for a call whose arguments cannot be sent; `faults` say why.
pub fn unfit(strategy: Strategy, call: &ToolCall, faults: String) -> Entry {
    let result = answered(strategy, call, ToolOutput::error(faults));
    marked(result, NotSent::UnfitArguments)
}

/// The entries for a call that was sent and whose outcome is unknown.
pub fn lost(strategy: Strategy, call: &ToolCall) -> Vec<Entry> {
    vec![
        Entry::Lost {
            call_id: call.id.clone(),
        },
        refusal(strategy, call, OUTCOME_UNKNOWN),
    ]
}

/// The entries for a call that was not sent because the time of its iteration is used up. It counts as a time-out.
pub fn no_time_left(strategy: Strategy, call: &ToolCall) -> Vec<Entry> {
    let error = CallError {
        message: NO_TIME_LEFT,
        timeout: true,
    };
    unsent(unanswered(strategy, call, error), NotSent::NoTime)
}

/// The result of a read-only call that was cut off because the time of the investigation is used up. It is no failure
/// of its tool.
pub fn not_finished(strategy: Strategy, call: &ToolCall) -> Entry {
    refusal(strategy, call, NOT_FINISHED)
}

/// The result of a call that was not sent because the time of the investigation is used up.
pub fn time_used_up(strategy: Strategy, call: &ToolCall) -> Entry {
    not_sent(strategy, call, NOT_SENT_TIME_USED_UP, NotSent::NoTime)
}

/// The entry for a call of a tool that is not offered, or of one that several servers have.
pub fn unknown_tool(plan: &AgentPlan, call: &ToolCall, tools: &[ToolSpec]) -> Entry {
    let called = plan.shown(&call.tool);
    let error = match tool_names::meant(&call.tool, tools) {
        Meant::Several(several) => format!(
            "several servers have a tool '{called}'. Call one of them by its whole name: {}",
            shown(plan, several)
        ),
        Meant::One(_) | Meant::None => format!(
            "unknown tool '{called}'. Available tools: {}",
            shown(plan, tools)
        ),
    };
    not_sent(plan.strategy, call, &error, NotSent::UnknownTool)
}

fn shown<'a>(plan: &AgentPlan, tools: impl IntoIterator<Item = &'a ToolSpec>) -> String {
    let names: Vec<Cow<'_, str>> = tools
        .into_iter()
        .map(|tool| plan.shown(&tool.name))
        .collect();
    names.join(", ")
}

/// The result of a call that was not sent.
pub(super) fn not_sent(strategy: Strategy, call: &ToolCall, error: &str, why: NotSent) -> Entry {
    marked(refusal(strategy, call, error), why)
}

fn unsent(entries: Vec<Entry>, why: NotSent) -> Vec<Entry> {
    entries
        .into_iter()
        .map(|entry| marked(entry, why))
        .collect()
}

/// The result with the reason why its call was not sent; any other entry stays the same.
fn marked(mut entry: Entry, why: NotSent) -> Entry {
    if let Entry::ToolResult(result) | Entry::Observation(result) = &mut entry {
        result.not_sent = Some(why);
    }
    entry
}

/// The result of a call that no tool answered.
fn refusal(strategy: Strategy, call: &ToolCall, error: &str) -> Entry {
    let content = if strategy.writes_calls() {
        format!("{OBSERVATION}Error - {error}")
    } else {
        format!("Error: {error}")
    };
    entry(strategy, call, ToolOutput::error(content))
}

/// The feedback on the third answer with the same calls.
pub(crate) fn repeats_itself() -> Entry {
    let content = "You have now made the same call with the same arguments three times in a row. Its result will not \
        change: use what it says, look somewhere else, or give your final answer. If you make it once more, it is not \
        run, and your next turn is the last one.";
    Entry::feedback(content)
}

/// Whether the text of an error says that it is a time-out. Servers and providers have no common code for it.
pub fn is_timeout(error: &str) -> bool {
    let error = error.to_lowercase();
    [
        "timeout",
        "timed out",
        "deadline exceeded",
        "deadline_exceeded",
    ]
    .iter()
    .any(|words| error.contains(words))
}

/// The feedback after a model call without an answer.
pub(crate) fn try_again(strategy: Strategy, error: &str) -> Entry {
    let head = if strategy.writes_calls() {
        OBSERVATION
    } else {
        ""
    };
    // In one line: the message of a provider may quote the request.
    let error = error.split_whitespace().collect::<Vec<_>>().join(" ");
    Entry::feedback(format!(
        "{head}Error from previous attempt: {error}. Please try again."
    ))
}

/// The output of the tool in an observation.
pub fn plain<'a>(tool: &str, observation: &'a str) -> &'a str {
    observation
        .strip_prefix(failed_execution(tool).as_str())
        .unwrap_or_else(|| observed(observation))
}

fn observed(observation: &str) -> &str {
    observation.strip_prefix(OBSERVATION).unwrap_or(observation)
}

/// The observation with a heading before the output of the tool.
pub fn numbered(observation: &str, heading: &str) -> String {
    format!("{OBSERVATION}{heading}{}", observed(observation))
}

/// The observation with a heading and the lines of the output indented below it, beside those of tarsy.
pub fn framed(observation: &str, heading: &str, own_lines: &[u32]) -> String {
    let head = format!("{OBSERVATION}{}", heading.trim_end());
    let output = indented_beside(observed(observation), own_lines);
    format!("{}\n{output}", head.trim_end())
}

/// The text with every line indented that is no line of tarsy; those are counted from 1 and ascend.
pub fn indented_beside(text: &str, own_lines: &[u32]) -> String {
    if own_lines.is_empty() {
        return indented(text);
    }
    let mut out: Vec<String> = Vec::new();
    let mut outside: Vec<&str> = Vec::new();
    for (number, line) in (1_u32..).zip(text.split('\n')) {
        if own_lines.binary_search(&number).is_err() {
            outside.push(line);
            continue;
        }
        if !outside.is_empty() {
            out.push(indented(&outside.join("\n")));
            outside.clear();
        }
        out.push(line.to_owned());
    }
    if !outside.is_empty() {
        out.push(indented(&outside.join("\n")));
    }
    out.join("\n")
}

/// The text with every line indented. Every Unicode line break ends a line.
pub fn indented(text: &str) -> String {
    const DEPTH: &str = "    ";
    let ends = [
        '\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}',
    ];
    let mut out = String::with_capacity(text.len() + text.len() / 16 + DEPTH.len());
    let mut rest = text;
    loop {
        let (line, behind) = rest
            .split_at_checked(rest.find(ends).unwrap_or(rest.len()))
            .unwrap_or((rest, ""));
        out.push_str(DEPTH);
        out.push_str(line);
        let Some(end) = behind.chars().next() else {
            return out;
        };
        out.push('\n');
        rest = behind
            .strip_prefix("\r\n")
            .or_else(|| behind.strip_prefix(end))
            .unwrap_or_default();
    }
}

/// The entry of a result with another text, whose first line is one of tarsy; any other entry stays the same.
pub(super) fn with_text(entry: &Entry, text: &str) -> Entry {
    let mut entry = entry.clone();
    if let Entry::Observation(result) | Entry::ToolResult(result) = &mut entry {
        result.facts = result.facts.take().map(Facts::summarised);
    }
    if let Entry::Observation(result) = &mut entry {
        result.content = format!("{OBSERVATION}{text}");
    } else if let Entry::ToolResult(result) = &mut entry {
        result.content = text.to_owned();
    }
    entry
}

fn failed_execution(tool: &str) -> String {
    format!("{OBSERVATION}Error executing {tool}: ")
}

fn entry(strategy: Strategy, call: &ToolCall, output: ToolOutput) -> Entry {
    let result = ToolResult {
        call_id: call.id.clone(),
        tool: call.tool.clone(),
        content: output.content,
        is_error: output.is_error,
        whole_bytes: output.whole_bytes,
        not_sent: None,
        facts: output.facts,
        spent: None,
    };
    if strategy.writes_calls() {
        Entry::Observation(result)
    } else {
        Entry::ToolResult(result)
    }
}

#[cfg(test)]
mod tests;
