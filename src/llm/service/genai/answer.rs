//! Converts the events of a stream into the parts of an answer.
//!
//! Text and thoughts are written as they arrive. Calls are written at the end, because only then the crate has read
//! their arguments; finish, provider data and usage follow in this order.

use ::genai::chat::{ChatStreamEvent, StreamEnd, ToolCall, Usage};
use serde_json::Value;

use super::finish;
use super::frames::{Frames, Summary};
use super::replay::provider_data;
use super::target::Selection;
use crate::llm::proto::generate_response::Content;
use crate::llm::proto::{FinishInfo, TextDelta, ThinkingDelta, ToolCallDelta, UsageInfo};
use crate::llm::service::provider::finish::{Finish, Written};
use crate::llm::service::provider::{ErrorCode, ProviderError, names};
use crate::llm::service::writer::ResponseWriter;

/// An answer that has begun.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    writer: &'a ResponseWriter,
    written: Written,
    /// Each call as far as it has arrived.
    calls: Vec<ToolCall>,
    end: Option<StreamEnd>,
}

impl<'a> Answer<'a> {
    pub(super) fn new(writer: &'a ResponseWriter) -> Self {
        Self { writer, written: Written::Nothing, calls: Vec::new(), end: None }
    }

    /// Whether the crate has seen the end.
    pub(super) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Writes what an event brings.
    pub(super) async fn add(&mut self, event: ChatStreamEvent) {
        match event {
            ChatStreamEvent::Chunk(chunk) if !chunk.content.is_empty() => {
                self.written = self.written.max(Written::Text);
                self.writer.content(Content::Text(TextDelta { content: chunk.content })).await;
            }
            ChatStreamEvent::ReasoningChunk(chunk) if !chunk.content.is_empty() => {
                self.written = self.written.max(Written::Thoughts);
                self.writer.content(Content::Thinking(ThinkingDelta { content: chunk.content })).await;
            }
            ChatStreamEvent::ToolCallChunk(chunk) => self.remember(chunk.tool_call),
            ChatStreamEvent::End(end) => self.end = Some(end),
            ChatStreamEvent::Start
            | ChatStreamEvent::Heartbeat
            | ChatStreamEvent::Chunk(_)
            | ChatStreamEvent::ReasoningChunk(_)
            | ChatStreamEvent::ThoughtSignatureChunk(_) => {}
        }
    }

    /// A later piece of a call has everything of the pieces before it.
    fn remember(&mut self, call: ToolCall) {
        match self.calls.iter_mut().find(|known| known.call_id == call.call_id) {
            Some(known) => *known = call,
            None => self.calls.push(call),
        }
    }

    /// Writes what is known at the end, except for the final message. `left_out` are tools that were not offered.
    ///
    /// # Errors
    /// When the answer has no content, or no reason to stop.
    pub(super) async fn end(
        mut self,
        selection: Selection<'_>,
        left_out: &str,
        frames: &Frames,
    ) -> Result<(), ProviderError> {
        let summary = frames.summary();
        let end = self.end.take().unwrap_or_default();
        let stop_reason = end.captured_stop_reason.as_ref().map(|reason| reason.raw().to_owned());
        let Some(reason) = summary.finish_reason.clone().or(stop_reason) else {
            return Err(ProviderError::transient(
                ErrorCode::Unavailable,
                "the stream of the provider ended without a finish reason",
            ));
        };
        let finish = finish::of(&reason);
        let usage = end.captured_usage.clone().or_else(|| summary.usage.clone());
        self.write_calls(end, finish).await;
        if let Some(error) = finish.error(&reason, self.written) {
            return Err(error);
        }
        self.writer.finish(self.info(finish, reason, left_out, summary)).await;
        if let Some(data) = provider_data(selection, &frames.take_parts()) {
            self.writer.provider_data(data).await;
        }
        if let Some(usage) = usage {
            self.writer.content(Content::Usage(tokens(&usage))).await;
        }
        Ok(())
    }

    async fn write_calls(&mut self, end: StreamEnd, finish: Finish) {
        let captured = end.captured_content.map(|content| content.into_tool_calls()).unwrap_or_default();
        let calls = if captured.is_empty() { std::mem::take(&mut self.calls) } else { captured };
        for call in calls {
            let Some(arguments) = arguments(&call.fn_arguments, finish) else {
                tracing::warn!("tool call left out: the output limit cut its arguments");
                continue;
            };
            self.written = Written::Calls;
            let name = names::from_wire(&call.fn_name);
            let call = ToolCallDelta { call_id: call_id(call.call_id), name, arguments };
            self.writer.content(Content::ToolCall(call)).await;
        }
    }

    fn info(&self, finish: Finish, reason: String, left_out: &str, summary: Summary) -> FinishInfo {
        FinishInfo {
            reason: finish.word(self.written).to_owned(),
            provider_reason: reason,
            message: if left_out.is_empty() { String::new() } else { format!("left out: {left_out}") },
            response_id: summary.response_id,
            model_version: summary.model_version,
        }
    }
}

/// The arguments as text; `None` if the output limit cut them. Arguments that are no JSON go to the client as they are.
fn arguments(value: &Value, finish: Finish) -> Option<String> {
    match value {
        Value::Null => Some("{}".to_owned()),
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(value) => Some(value.to_string()),
            Err(_) if finish == Finish::MaxTokens => None,
            Err(_) if text.trim().is_empty() => Some("{}".to_owned()),
            Err(_) => Some(text.clone()),
        },
        Value::Object(_) | Value::Array(_) | Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
    }
}

/// The crate gives `call_0` to a call without an id, which is the id of another call in the next answer.
fn call_id(id: String) -> String {
    let number = id.strip_prefix("call_").unwrap_or_default();
    let is_made_up = id.is_empty() || (number.len() < 4 && number.parse::<u16>().is_ok());
    if is_made_up { format!("call_{}", uuid::Uuid::new_v4().simple()) } else { id }
}

fn tokens(usage: &Usage) -> UsageInfo {
    let count = |tokens: Option<i32>| tokens.unwrap_or_default().max(0);
    let prompt = usage.prompt_tokens_details.as_ref();
    let completion = usage.completion_tokens_details.as_ref();
    let (input, output) = (count(usage.prompt_tokens), count(usage.completion_tokens));
    UsageInfo {
        input_tokens: input,
        output_tokens: output,
        total_tokens: usage.total_tokens.map_or_else(|| input.saturating_add(output), |total| total.max(0)),
        thinking_tokens: count(completion.and_then(|details| details.reasoning_tokens)),
        cache_read_tokens: count(prompt.and_then(|details| details.cached_tokens)),
        cache_creation_tokens: count(prompt.and_then(|details| details.cache_creation_tokens)),
        tool_use_prompt_tokens: 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_an_object_unless_the_model_wrote_none() {
        for (value, finish, expected) in [
            (json!({"z":1.0,"a":[1]}), Finish::Stop, Some(r#"{"z":1.0,"a":[1]}"#)),
            (json!(r#"{"a": 1}"#), Finish::Stop, Some(r#"{"a":1}"#)),
            (Value::Null, Finish::Stop, Some("{}")),
            (json!(""), Finish::Stop, Some("{}")),
            (json!("{bad"), Finish::Stop, Some("{bad")),
            (json!("{bad"), Finish::MaxTokens, None),
            (json!(""), Finish::MaxTokens, None),
        ] {
            assert_eq!(arguments(&value, finish).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn an_id_that_the_crate_made_up_is_replaced() {
        for id in ["toolu_1", "call_A", "call_12345", "chatcmpl-tool-1"] {
            assert_eq!(call_id(id.to_owned()), id);
        }
        for id in ["", "call_0", "call_12"] {
            assert_eq!(call_id(id.to_owned()).len(), 37, "{id}");
        }
    }
}
