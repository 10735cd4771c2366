//! What a tool call comes to, as the journal and the model get it.
//!
//! A model with bound tools gets a tool result; one that writes its calls down gets an observation, which a person
//! could have written.

use super::entry::{Entry, FailureSource, ToolCall, ToolResult};
use crate::investigation::plan::{Strategy, ToolSpec};

/// The text of a tool's reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutput {
    pub content: String,
    /// The tool reports a failure.
    pub is_error: bool,
}

/// Why a model or tool call gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallError<'a> {
    pub message: &'a str,
    pub timeout: bool,
}

/// How every observation begins.
const OBSERVATION: &str = "Observation: ";

/// What the model is told of a call whose outcome nobody knows.
const OUTCOME_UNKNOWN: &str = "the connection was lost after this call was sent. Its outcome is unknown and it is \
    not sent again. Check the present state before you decide what to do.";

/// What the model is told of a call whose arguments are gone.
const NOT_SENT: &str = "this call was not sent: its arguments hold something that is masked, and the worker that knew \
    them has stopped. Make it again if it is still needed.";

/// What the model is told of a call that it made too often.
const NOT_RUN_AGAIN: &str = "this call was not run: it is the same, with the same arguments, as the last three, and \
    their results stand above.";

/// What the model is told of a call that came up too late.
const NO_TIME_LEFT: &str = "not sent, no time left: the calls before it used up the time of this iteration";

/// The entry for an answer of a tool.
pub fn answered(strategy: Strategy, call: &ToolCall, output: ToolOutput) -> Entry {
    let ToolOutput { content, is_error } = output;
    let content = match (observes(strategy), is_error) {
        (false, _) => content,
        (true, false) => format!("{OBSERVATION}{content}"),
        (true, true) => format!("{}{content}", failed_execution(&call.tool)),
    };
    entry(strategy, call, ToolOutput { content, is_error })
}

/// The entries for a call without an answer: the model is told, and the failure counts.
pub fn unanswered(strategy: Strategy, call: &ToolCall, error: CallError<'_>) -> Vec<Entry> {
    let CallError { message, timeout } = error;
    // The store has no NUL, and a resume has to read what this run has said.
    let error = &message.replace('\0', "");
    let told = format!("Tool execution failed: {error}");
    let failed = Entry::Failed {
        error: format!("{}: {error}", call.tool),
        timeout: timeout || says_timeout(error),
        source: FailureSource::Tool,
        code: String::new(),
    };
    vec![refusal(strategy, call, if observes(strategy) { &told } else { error }), failed]
}

/// The entries for a call that was sent and whose outcome nobody knows.
pub fn lost(strategy: Strategy, call: &ToolCall) -> Vec<Entry> {
    vec![Entry::Lost { call_id: call.id.clone() }, refusal(strategy, call, OUTCOME_UNKNOWN)]
}

/// The entry for a call whose own arguments went with the worker that had them.
pub fn not_sent(strategy: Strategy, call: &ToolCall) -> Entry {
    refusal(strategy, call, NOT_SENT)
}

/// The entry for a call that comes again and again.
pub fn not_run_again(strategy: Strategy, call: &ToolCall) -> Entry {
    refusal(strategy, call, NOT_RUN_AGAIN)
}

/// The entry for a call beyond those of one answer that are run.
pub fn too_many_calls(strategy: Strategy, call: &ToolCall, most: u32) -> Entry {
    refusal(strategy, call, &format!("not run: at most {most} calls of one answer"))
}

/// The entries for a call that comes up when the time of its iteration is used up. It counts as a time-out.
pub fn no_time_left(strategy: Strategy, call: &ToolCall) -> Vec<Entry> {
    unanswered(strategy, call, CallError { message: NO_TIME_LEFT, timeout: true })
}

/// The entry for a structured call of something that is not offered.
pub fn unknown_tool(strategy: Strategy, call: &ToolCall, tools: &[ToolSpec]) -> Entry {
    let names: Vec<&str> = tools.iter().map(|spec| spec.name.as_str()).collect();
    let error = format!("unknown tool '{}'. Available tools: {}", call.tool, names.join(", "));
    refusal(strategy, call, &error)
}

/// The entry for a call that no tool answers.
fn refusal(strategy: Strategy, call: &ToolCall, error: &str) -> Entry {
    let content = if observes(strategy) { format!("{OBSERVATION}Error - {error}") } else { format!("Error: {error}") };
    entry(strategy, call, ToolOutput { content, is_error: true })
}

/// What the model is told that made the same calls for the third time.
pub fn repeats_itself() -> Entry {
    let content = "You have now made the same call with the same arguments three times in a row. Its result will not \
        change: use what it says, look somewhere else, or give your final answer. If you make it once more, it is not \
        run, and your next turn is the last one.";
    Entry::Feedback { content: content.to_owned() }
}

/// The feedback on an empty answer after which another iteration may follow.
pub fn empty_answer(strategy: Strategy) -> Entry {
    after_empty(if observes(strategy) {
        "Go on with a \"Thought:\" and then an \"Action:\" with its \"Action Input:\", or your \"Final Answer:\"."
    } else {
        "Call a tool, or give your final answer as text."
    })
}

/// The feedback on an empty answer that should have been the last one.
pub fn empty_last_answer(strategy: Strategy) -> Entry {
    after_empty(if observes(strategy) {
        "Write your \"Final Answer:\" now."
    } else {
        "Give your answer now, as text. No tool can be called."
    })
}

fn after_empty(request: &str) -> Entry {
    Entry::Feedback { content: format!("Your previous response was empty. {request}") }
}

/// Whether an error is one of too much time, by what it says. Servers and providers have no common code for it.
pub fn says_timeout(error: &str) -> bool {
    let error = error.to_lowercase();
    ["timeout", "timed out", "deadline exceeded", "deadline_exceeded"].iter().any(|words| error.contains(words))
}

/// What the model is told after a model call that gave no answer.
pub fn try_again(strategy: Strategy, error: &str) -> Entry {
    let head = if observes(strategy) { OBSERVATION } else { "" };
    // In one line: a provider's message may repeat what it was sent.
    let error = error.split_whitespace().collect::<Vec<_>>().join(" ");
    Entry::Feedback { content: format!("{head}Error from previous attempt: {error}. Please try again.") }
}

/// An observation without the words around it: what the tool said.
pub fn plain<'a>(tool: &str, observation: &'a str) -> &'a str {
    let said = observation.strip_prefix(OBSERVATION).unwrap_or(observation);
    observation.strip_prefix(failed_execution(tool).as_str()).unwrap_or(said)
}

/// What stands in the place of an observation that was removed.
pub fn removed(text: &str) -> String {
    format!("{OBSERVATION}{text}")
}

/// An observation with a heading before what the tool said.
pub fn numbered(observation: &str, heading: &str) -> String {
    format!("{OBSERVATION}{heading}{}", observation.strip_prefix(OBSERVATION).unwrap_or(observation))
}

/// The same with every line of it indented, the first one below the heading.
pub fn framed(observation: &str, heading: &str) -> String {
    let head = format!("{OBSERVATION}{}", heading.trim_end());
    format!("{}\n{}", head.trim_end(), indented(observation.strip_prefix(OBSERVATION).unwrap_or(observation)))
}

/// A text with every line of it indented. A line ends wherever a reader may see one end.
pub fn indented(text: &str) -> String {
    const DEPTH: &str = "    ";
    let ends = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];
    let mut out = String::with_capacity(text.len() + text.len() / 16 + DEPTH.len());
    let mut rest = text;
    loop {
        let (line, behind) = rest.split_at_checked(rest.find(ends).unwrap_or(rest.len())).unwrap_or((rest, ""));
        out.push_str(DEPTH);
        out.push_str(line);
        let Some(end) = behind.chars().next() else { return out };
        out.push('\n');
        rest = behind.strip_prefix("\r\n").or_else(|| behind.strip_prefix(end)).unwrap_or_default();
    }
}

fn failed_execution(tool: &str) -> String {
    format!("{OBSERVATION}Error executing {tool}: ")
}

fn observes(strategy: Strategy) -> bool {
    match strategy {
        Strategy::React => true,
        Strategy::SingleCall | Strategy::NativeThinking | Strategy::Synthesis | Strategy::SynthesisNativeThinking => {
            false
        }
    }
}

fn entry(strategy: Strategy, call: &ToolCall, output: ToolOutput) -> Entry {
    let ToolOutput { content, is_error } = output;
    let result = ToolResult { call_id: call.id.clone(), tool: call.tool.clone(), content, is_error };
    if observes(strategy) { Entry::Observation(result) } else { Entry::ToolResult(result) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observation_says_what_became_of_the_call_and_the_timeline_only_what_the_tool_said() {
        let call = ToolCall { id: "c".into(), tool: "k8s.get".into(), arguments: "{}".into(), read_only: true };
        let told = |entry: &Entry| {
            let Entry::Observation(ToolResult { content, .. }) = entry else { panic!("{entry:?}") };
            (content.clone(), plain("k8s.get", content).to_owned())
        };
        let shown = |entry: Entry, content: &str, said: &str| {
            assert_eq!(told(&entry), (content.to_owned(), said.to_owned()));
        };
        let react = Strategy::React;
        shown(
            answered(react, &call, ToolOutput { content: "12 pods".into(), is_error: false }),
            "Observation: 12 pods",
            "12 pods",
        );
        let refused = answered(react, &call, ToolOutput { content: "forbidden".into(), is_error: true });
        shown(refused, "Observation: Error executing k8s.get: forbidden", "forbidden");
        let silent = "Error - Tool execution failed: no answer within 3 s";
        let entries = unanswered(react, &call, CallError { message: "no answer within 3 s", timeout: true });
        shown(entries[0].clone(), &format!("Observation: {silent}"), silent);
        assert!(told(&lost(react, &call)[1]).0.starts_with("Observation: Error - the connection was lost"));
    }
    #[test]
    fn a_failure_of_time_is_known_by_its_words() {
        let late =
            ["no answer: Timeout", "the request timed out", "context deadline exceeded", "READ TIMEOUT", "timeouts"];
        assert!(late.iter().all(|error| says_timeout(error)));
        for other in ["connection refused", "", "time out of range", "the deadline is tomorrow"] {
            assert!(!says_timeout(other), "{other}");
        }
        let call = ToolCall { id: "c".into(), tool: "k8s.get".into(), arguments: "{}".into(), read_only: true };
        let counted = |error: &str, timeout| match unanswered(
            Strategy::React,
            &call,
            CallError { message: error, timeout },
        )
        .pop()
        {
            Some(Entry::Failed { timeout, source: FailureSource::Tool, .. }) => timeout,
            other => panic!("{other:?}"),
        };
        assert!(counted("upstream timed out", false) && counted("slow", true) && !counted("reset", false));
    }

    #[test]
    fn a_model_with_bound_tools_is_told_what_became_of_a_call_in_a_tool_result() {
        let call = ToolCall { id: "c".into(), tool: "k8s.got".into(), arguments: "{}".into(), read_only: true };
        let native = Strategy::NativeThinking;
        let result = |content: &str| {
            Entry::ToolResult(ToolResult {
                call_id: "c".into(),
                tool: "k8s.got".into(),
                content: content.into(),
                is_error: true,
            })
        };
        assert_eq!(
            answered(native, &call, ToolOutput { content: "forbidden".into(), is_error: true }),
            result("forbidden")
        );
        assert_eq!(
            unanswered(native, &call, CallError { message: "reset", timeout: false })[0],
            result("Error: reset")
        );
        let tools = ["k8s.get", "k8s.top"].map(|name| ToolSpec {
            name: name.into(),
            description: String::new(),
            parameters_schema: "{}".into(),
            read_only: true,
        });
        let unknown = "Error: unknown tool 'k8s.got'. Available tools: k8s.get, k8s.top";
        assert_eq!(unknown_tool(native, &call, &tools), result(unknown));
    }
}
