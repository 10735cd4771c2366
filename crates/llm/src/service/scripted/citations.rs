//! Fills the placeholders of a recording with the numbers and ids of the request.
//!
//! | in the recording | becomes |
//! |---|---|
//! | `[[drill.jobs]]` | the event number of that tool's last result in the conversation, as `[12]` |
//! | `[[drill.jobs#1]]` | the number of the tool's first result |
//! | `[[drill.jobs, drill.pods]]` | the numbers of two tools |
//! | `[[*]]` | the number of the last result of any tool |
//! | `[[changes:2]]` | the second number that `changes` cites: an analysis for a synthesis, or a sub-agent |
//! | `{execution}` | the id of the request's execution, which distinguishes the calls of several executions |
//!
//! A recording cannot contain these values, because they differ between sessions.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::proto::{ASSISTANT, ConversationMessage, GenerateRequest};
use tarsy_core::execution::event_refs::{cited, event_in_heading};
use tarsy_core::prompt::context_in;
use tarsy_core::react;
use tarsy_core::sub_agents::TOOL as DISPATCH;
use tarsy_drill::transcript::{Chunk, RecordedAnswer};

/// The placeholder of the execution id.
const EXECUTION: &str = "{execution}";

/// The name of the last result, of whichever tool.
const ANY_TOOL: &str = "*";

/// The start of an observation in a conversation of the strategy `react`.
const OBSERVATION: &str = "Observation: ";

/// The start of the heading above an agent's analysis.
const HEADING: &str = "### ";

/// The event numbers in a request, with the name of their tool, or of the agent that cites them.
#[derive(Debug)]
struct EventNumbers {
    results: Vec<(String, u32)>,
    citations: Vec<(String, u32)>,
}

/// The answer with all placeholders filled from this request.
pub(super) fn filled(answer: &RecordedAnswer, request: &GenerateRequest) -> RecordedAnswer {
    let mut answer = answer.clone();
    let mut shown = None;
    for chunk in &mut answer.chunks {
        match chunk {
            Chunk::Text(text) => *text = text.replace(EXECUTION, &request.execution_id),
            Chunk::Call(call) => fill_execution(&mut call.arguments, &request.execution_id),
            Chunk::Thinking(_) | Chunk::Code(_) | Chunk::CodeResult(_) | Chunk::Grounding(_) => {}
            Chunk::Wait(_) | Chunk::Gate(_) | Chunk::Cut(()) | Chunk::Hang(()) => {}
        }
        if let Chunk::Thinking(text) | Chunk::Text(text) = chunk
            && text.contains("[[")
        {
            *text = cite(
                text,
                shown.get_or_insert_with(|| EventNumbers::from_messages(&request.messages)),
            );
        }
    }
    answer
}

/// Fills the execution id into every string of a call's arguments.
fn fill_execution(arguments: &mut Value, execution_id: &str) {
    match arguments {
        Value::String(text) => *text = text.replace(EXECUTION, execution_id),
        Value::Array(values) => {
            for value in values {
                fill_execution(value, execution_id);
            }
        }
        Value::Object(fields) => {
            for value in fields.values_mut() {
                fill_execution(value, execution_id);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl EventNumbers {
    fn from_messages(messages: &[ConversationMessage]) -> Self {
        let contexts = messages
            .iter()
            .filter_map(|message| context_in(&message.content));
        Self {
            results: numbers(messages),
            citations: contexts
                .flat_map(citations)
                .chain(answers_of_sub_agents(messages))
                .collect(),
        }
    }

    /// The number for a placeholder, or its name if the request has no such number.
    fn source(&self, name: &str) -> String {
        let (name, place, known) = match (name.split_once(':'), name.split_once('#')) {
            (Some((agent, place)), _) => (agent, Some(place), &self.citations),
            (None, Some((tool, place))) => (tool, Some(place), &self.results),
            (None, None) => (name, None, &self.results),
        };
        let mut own = known
            .iter()
            .filter(|(of, _)| of == name || name == ANY_TOOL)
            .map(|(_, number)| number);
        let number = match place.map(str::parse::<usize>) {
            Some(place) => place.ok().and_then(|place| own.nth(place.checked_sub(1)?)),
            None => own.next_back(),
        };
        number.map_or_else(|| name.to_owned(), ToString::to_string)
    }
}

/// The numbers that each agent's analysis cites, in order.
fn citations(context: &str) -> Vec<(String, u32)> {
    let mut agent = None;
    let mut found = Vec::new();
    for line in context.lines() {
        if let Some(name) = line.strip_prefix(HEADING) {
            agent = Some(name);
        }
        for number in cited(line) {
            let cited = agent.map(|agent| (agent.to_owned(), number));
            found.extend(cited.filter(|cited| !found.contains(cited)));
        }
    }
    found
}

/// The numbers that the answer of each sub-agent cites, in order. The call of the answer names the agent.
fn answers_of_sub_agents(messages: &[ConversationMessage]) -> Vec<(String, u32)> {
    let mut agents = BTreeMap::new();
    let mut found = Vec::new();
    for message in messages {
        for call in message
            .tool_calls
            .iter()
            .filter(|call| call.name == DISPATCH)
        {
            let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
            let agent = arguments.get("agent").and_then(Value::as_str);
            agents.insert(call.id.as_str(), agent.unwrap_or_default().to_owned());
        }
        let Some(agent) = agents.get(message.tool_call_id.as_str()) else {
            continue;
        };
        // The first line has the number of the result itself.
        let answer = message.content.split_once('\n');
        let numbers = cited(answer.map_or("", |(_, answer)| answer)).into_iter();
        found.extend(numbers.map(|number| (agent.clone(), number)));
    }
    found
}

/// The event numbers of each tool's results, in order.
fn numbers(messages: &[ConversationMessage]) -> Vec<(String, u32)> {
    let mut requested = None;
    let mut found = Vec::new();
    for message in messages {
        match message.role.as_str() {
            ASSISTANT => requested = react::read(&message.content, None).action,
            "tool" => found.extend(
                event_in_heading(&message.content)
                    .map(|number| (message.tool_name.clone(), number)),
            ),
            _ => {
                let number = message
                    .content
                    .strip_prefix(OBSERVATION)
                    .and_then(event_in_heading);
                found.extend(requested.take().zip(number));
            }
        }
    }
    found
}

fn cite(text: &str, shown: &EventNumbers) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("[[") {
        let Some((names, after)) = after.split_once("]]") else {
            break;
        };
        let sources: Vec<String> = names
            .split(',')
            .map(|name| shown.source(name.trim()))
            .collect();
        out.push_str(&format!("{before}[{}]", sources.join(", ")));
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::ToolCall;
    use tarsy_core::prompt::with_context;

    fn message(role: &str, tool_name: &str, content: &str) -> ConversationMessage {
        ConversationMessage {
            role: role.into(),
            tool_name: tool_name.into(),
            content: content.into(),
            ..ConversationMessage::default()
        }
    }

    fn filled_text(text: &str, messages: &[ConversationMessage]) -> String {
        let answer = RecordedAnswer {
            chunks: vec![Chunk::Text(text.into())],
            ..RecordedAnswer::default()
        };
        let request = GenerateRequest {
            messages: messages.to_vec(),
            ..GenerateRequest::default()
        };
        let Some(Chunk::Text(text)) = filled(&answer, &request).chunks.pop() else {
            panic!()
        };
        text
    }

    #[test]
    fn a_recording_cites_the_event_numbers_of_the_conversation() {
        let messages = [
            message("user", "", "the alert"),
            message("assistant", "", ""),
            message("tool", "a.look", "[event 5]\nfull"),
            message("tool", "a.log", "no number"),
            message(
                "assistant",
                "",
                "Thought: more\nAction: a.look\nAction Input: {}",
            ),
            message("user", "", "Observation: [event 9]\n[event 7]\nstill full"),
            message("user", "", "Observation: [event 11]\nof nobody"),
        ];
        assert_eq!(
            filled_text(
                "Full [[a.look]], [[a.look#1, a.look]], [[a.log]], [[a.look#3]], [[a.look#0]] [[",
                &messages
            ),
            "Full [9], [5, 9], [a.log], [a.look], [a.look] [["
        );
    }

    #[test]
    fn a_recorded_call_can_contain_the_id_of_its_execution() {
        let call: Chunk = serde_json::from_value(serde_json::json!(
            {"call": {"tool": "a.look", "arguments": {"of": ["{execution}", 1], "n": {"as": "x-{execution}"}}}}
        ))
        .unwrap();
        let answer = RecordedAnswer {
            chunks: vec![call, Chunk::Text("{execution}: {n}".into())],
            ..RecordedAnswer::default()
        };
        let request = GenerateRequest {
            execution_id: "e7".into(),
            ..GenerateRequest::default()
        };
        let chunks = filled(&answer, &request).chunks;
        let [Chunk::Call(call), Chunk::Text(text)] = chunks.as_slice() else {
            panic!("{chunks:?}")
        };
        assert_eq!(
            call.arguments,
            serde_json::json!({"of": ["e7", 1], "n": {"as": "x-e7"}})
        );
        assert_eq!(text, "e7: {n}");
    }

    #[test]
    fn a_synthesis_cites_the_numbers_that_the_analyses_cite() {
        let context = "### changes\n\nCause: new pool [31], rolled out [29, 31]\n\n### runtime\n\nFull [40]\n## Open\n[44]";
        let user = with_context("The alert says [3].\n### changes\n[4]", context);
        assert_eq!(
            filled_text(
                "[[changes:1, changes:2]] [[runtime:2]] [[changes:3]] [[nobody:1]]",
                &[message("user", "", &user)]
            ),
            "[31, 29] [44] [changes] [nobody]"
        );
    }

    #[test]
    fn an_agent_cites_the_numbers_that_its_sub_agents_cite() {
        let call = |id: &str, agent: &str| ToolCall {
            id: id.into(),
            name: DISPATCH.into(),
            arguments: format!(r#"{{"agent": "{agent}", "task": "look [3]"}}"#),
        };
        let answer = |id: &str, content: &str| ConversationMessage {
            tool_call_id: id.into(),
            ..message("tool", DISPATCH, content)
        };
        let messages = [
            ConversationMessage {
                tool_calls: vec![call("c1", "logs"), call("c2", "db")],
                ..message("assistant", "", "")
            },
            answer("c1", "[event 20]\n    Found:\n    - slow [9, 11]"),
            answer("c2", "[event 21]\n    Found:\n    - locks [14]"),
        ];
        assert_eq!(
            filled_text("[[logs:1]] [[logs:2]] [[db:1]] [[db:2]]", &messages),
            "[9] [11] [14] [db]"
        );
    }
}
