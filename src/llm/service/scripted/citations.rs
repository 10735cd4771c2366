//! Citations of a recording: `[[drill.jobs]]` becomes the number of that tool's last result in the conversation, as
//! `[12]`; `[[drill.jobs#1]]` that of its first one, `[[drill.jobs, drill.pods]]` those of two tools.
//!
//! A recording cannot know the numbers: they depend on what else happened to the session.

use crate::drill::transcript::{Answer, Chunk};
use crate::investigation::numbers::headed;
use crate::investigation::react;
use crate::llm::proto::{ConversationMessage, GenerateRequest};

/// How an observation begins, for a model that writes its calls down.
const OBSERVATION: &str = "Observation: ";

/// The answer with the numbers that this request shows.
pub(super) fn filled(answer: &Answer, request: &GenerateRequest) -> Answer {
    let mut answer = answer.clone();
    let mut results = None;
    for chunk in &mut answer.chunks {
        if let Chunk::Thinking(text) | Chunk::Text(text) = chunk
            && text.contains("[[")
        {
            *text = cite(text, results.get_or_insert_with(|| numbers(&request.messages)));
        }
    }
    answer
}

/// Each tool's results with the numbers of their events, in order.
fn numbers(messages: &[ConversationMessage]) -> Vec<(String, u32)> {
    let mut written = None;
    let mut found = Vec::new();
    for message in messages {
        match message.role.as_str() {
            "assistant" => written = react::read(&message.content, None).action,
            "tool" => found.extend(headed(&message.content).map(|number| (message.tool_name.clone(), number))),
            _ => {
                let number = message.content.strip_prefix(OBSERVATION).and_then(headed);
                found.extend(written.take().zip(number));
            }
        }
    }
    found
}

fn cite(text: &str, results: &[(String, u32)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("[[") {
        let Some((names, after)) = after.split_once("]]") else { break };
        let sources: Vec<String> = names.split(',').map(|name| source(name.trim(), results)).collect();
        out.push_str(&format!("{before}[{}]", sources.join(", ")));
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The number, or the tool's name where no number is shown.
fn source(name: &str, results: &[(String, u32)]) -> String {
    let (tool, place) = match name.split_once('#') {
        Some((tool, place)) => (tool, place.parse::<usize>().ok()),
        None => (name, None),
    };
    let mut of_tool = results.iter().filter(|(name, _)| name == tool).map(|(_, number)| number);
    let number = match place {
        Some(place) => of_tool.nth(place.saturating_sub(1)),
        None => of_tool.next_back(),
    };
    number.map_or_else(|| tool.to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(role: &str, tool_name: &str, content: &str) -> ConversationMessage {
        ConversationMessage {
            role: role.into(),
            tool_name: tool_name.into(),
            content: content.into(),
            ..ConversationMessage::default()
        }
    }

    #[test]
    fn a_recording_cites_the_numbers_that_the_conversation_shows() {
        let messages = [
            message("user", "", "the alert"),
            message("assistant", "", ""),
            message("tool", "a.look", "[event 5]\nfull"),
            message("tool", "a.log", "no number"),
            message("assistant", "", "Thought: more\nAction: a.look\nAction Input: {}"),
            message("user", "", "Observation: [event 9]\n[event 7]\nstill full"),
            message("user", "", "Observation: [event 11]\nof nobody"),
        ];
        let answer = Answer {
            chunks: vec![Chunk::Text("Full [[a.look]], [[a.look#1, a.look]], [[a.log]], [[a.look#3]] [[".into())],
            ..Answer::default()
        };
        let request = GenerateRequest { messages: messages.to_vec(), ..GenerateRequest::default() };
        let Some(Chunk::Text(text)) = filled(&answer, &request).chunks.pop() else { panic!() };
        assert_eq!(text, "Full [9], [5, 9], [a.log], [a.look] [[");
    }
}
