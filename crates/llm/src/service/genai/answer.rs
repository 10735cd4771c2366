//! Converts the events of a stream into the parts of an answer.
//!
//! Text and thoughts are written as they arrive, and a call when its arguments are complete. Finish, provider data and
//! usage follow in this order.

use std::collections::HashMap;

use ::genai::chat::{ChatStreamEvent, StreamChunk, StreamEnd, Usage};
use serde::de::IgnoredAny;

use super::finish;
use super::frames::{Called, DONE, Frames, REFUSAL, Summary, is_signed};
use super::history::provider_data;
use super::target::Selection;
use super::tools::Tools;
use crate::proto::generate_response::Content;
use crate::proto::{FinishInfo, TextDelta, ThinkingDelta, UsageInfo};
use crate::service::provider::finish::{Finish, Written};
use crate::service::provider::key::ApiKey;
use crate::service::provider::names::tool_call;
use crate::service::provider::schemas::Renamed;
use crate::service::provider::{ErrorCode, ProviderError, repair};
use crate::service::writer::ResponseWriter;

/// The parts of an answer that have arrived, and the writer that gets them.
#[derive(Debug)]
pub(super) struct GenaiAnswer<'a> {
    writer: &'a ResponseWriter,
    key: Option<&'a ApiKey>,
    /// The properties that have another name at the provider, by the tool's name there.
    renamed: &'a HashMap<String, Renamed>,
    written: Written,
    /// A call whose arguments are not JSON, and all later ones: the end shows whether the output limit cut them.
    unclear: Vec<Called>,
    end: Option<StreamEnd>,
}

impl<'a> GenaiAnswer<'a> {
    pub(super) fn new(
        writer: &'a ResponseWriter,
        key: Option<&'a ApiKey>,
        renamed: &'a HashMap<String, Renamed>,
    ) -> Self {
        Self {
            writer,
            key,
            renamed,
            written: Written::Nothing,
            unclear: Vec::new(),
            end: None,
        }
    }

    /// Whether the crate has seen the end.
    pub(super) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Writes what an event brings, after the calls before it.
    pub(super) async fn add(&mut self, event: ChatStreamEvent, frames: &Frames) {
        for call in frames.take_calls() {
            self.add_call(call).await;
        }
        match event {
            ChatStreamEvent::Chunk(StreamChunk { content }) if !content.is_empty() => {
                self.written = self.written.max(Written::Text);
                let text = Content::Text(TextDelta { content });
                self.writer.content(text).await;
            }
            ChatStreamEvent::ReasoningChunk(StreamChunk { content }) if !content.is_empty() => {
                self.written = self.written.max(Written::Thoughts);
                let thoughts = Content::Thinking(ThinkingDelta { content });
                self.writer.content(thoughts).await;
            }
            ChatStreamEvent::End(end) => self.end = Some(end),
            ChatStreamEvent::Start
            | ChatStreamEvent::Heartbeat
            | ChatStreamEvent::Chunk(_)
            | ChatStreamEvent::ReasoningChunk(_)
            | ChatStreamEvent::ToolCallChunk(_)
            | ChatStreamEvent::ThoughtSignatureChunk(_) => {}
        }
    }

    async fn add_call(&mut self, call: Called) {
        match compact(&call.arguments) {
            Some(arguments) if self.unclear.is_empty() => {
                self.write_call(Called { arguments, ..call }).await
            }
            Some(_) | None => self.unclear.push(call),
        }
    }

    async fn write_call(&mut self, call: Called) {
        self.written = Written::Calls;
        let call = tool_call(call.id, &call.name, call.arguments, self.renamed);
        self.writer.content(Content::ToolCall(call)).await;
    }

    /// Writes what is known at the end, except for the final message. `tools` has those that were not offered.
    ///
    /// # Errors
    /// When the answer has no content, or no reason to stop.
    pub(super) async fn end(
        mut self,
        selection: Selection<'_>,
        tools: &Tools,
        frames: &Frames,
    ) -> Result<(), ProviderError> {
        let summary = frames.summary();
        let end = self.end.take().unwrap_or_default();
        let stop_reason = end.captured_stop_reason.as_ref();
        let reason = summary
            .finish_reason
            .clone()
            .or_else(|| Some(stop_reason?.raw().to_owned()))
            .or_else(|| summary.is_done.then(|| DONE.to_owned()))
            .ok_or_else(ProviderError::unfinished)?;
        let finish = match reason.as_str() {
            // The stream is whole, although its server gave no reason.
            DONE => Finish::Stop,
            // A model that refuses stops as any other one.
            _ if !summary.refusal.trim().is_empty() => finish::parse(REFUSAL),
            reason => finish::parse(reason),
        };
        let usage = end.captured_usage.clone().or_else(|| summary.usage.clone());
        let last = frames.take_last_calls();
        // It is unknown which arguments belong to which call. The rest of an answer that was cut may have shown it.
        // Without a reason to stop, only whole arguments show that a call was not cut.
        let is_begun = reason == DONE
            && last
                .calls
                .iter()
                .any(|call| call.arguments.trim().is_empty());
        if (last.is_malformed || is_begun) && finish != Finish::MaxTokens {
            let message = "The pieces of a tool call do not fit together, or its name is missing";
            return Err(
                ProviderError::transient(ErrorCode::MalformedToolCall, message).with_status(reason),
            );
        }
        for call in last.calls {
            self.add_call(call).await;
        }
        self.write_unclear(finish).await;
        if let Some(error) = finish.error(&reason, self.written) {
            return Err(refused(error, &summary.refusal, self.key));
        }
        let parts = frames.take_parts();
        let info = FinishInfo {
            signed_reasoning: is_signed(&parts),
            ..self.info(finish, reason, tools, summary)
        };
        self.writer.finish(info).await;
        if let Some(data) = provider_data(selection, &parts) {
            self.writer.provider_data(data).await;
        }
        if let Some(usage) = usage {
            self.writer.content(Content::Usage(tokens(&usage))).await;
        }
        Ok(())
    }

    async fn write_unclear(&mut self, finish: Finish) {
        for call in std::mem::take(&mut self.unclear) {
            let arguments = match compact(&call.arguments) {
                Some(arguments) => arguments,
                None if finish == Finish::MaxTokens => {
                    tracing::warn!("tool call left out: the output limit cut its arguments");
                    continue;
                }
                None if call.arguments.trim().is_empty() => "{}".to_owned(),
                // The client tells the model that these arguments are not JSON.
                None => call.arguments,
            };
            self.write_call(Called { arguments, ..call }).await;
        }
    }

    fn info(&self, finish: Finish, reason: String, tools: &Tools, summary: Summary) -> FinishInfo {
        let redacted = |text: String| self.key.map(|key| key.redact(&text)).unwrap_or(text);
        FinishInfo {
            reason: finish.word(self.written).to_owned(),
            provider_reason: redacted(reason),
            message: match tools.left_out.as_str() {
                "" => String::new(),
                tools => format!("left out: {tools}"),
            },
            response_id: redacted(summary.response_id),
            model_version: redacted(summary.model_version),
            refused_tools: tools.refused.tools(self.key),
            signed_reasoning: false,
        }
    }
}

/// The error of an answer without content, with the words of a model that refused.
fn refused(error: ProviderError, words: &str, key: Option<&ApiKey>) -> ProviderError {
    let words = words.trim();
    if words.is_empty() || error.code != ErrorCode::Blocked {
        return error;
    }
    let words = key.map_or_else(|| words.to_owned(), |key| key.redact(words));
    let message = format!("The model refused to answer: {words}");
    ProviderError::new(ErrorCode::Blocked, message).with_status(REFUSAL)
}

/// JSON without the spaces between its tokens, each of which keeps its spelling; `None` if the text is not JSON.
fn compact(text: &str) -> Option<String> {
    let text = repair::whole(text);
    serde_json::from_str::<IgnoredAny>(&text).ok()?;
    let mut compact = String::with_capacity(text.len());
    let mut is_text = false;
    let mut is_escaped = false;
    for letter in text.chars() {
        if is_text || !letter.is_ascii_whitespace() {
            compact.push(letter);
        }
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = is_text,
            '"' => is_text = !is_text,
            _ => {}
        }
    }
    Some(compact)
}

fn tokens(usage: &Usage) -> UsageInfo {
    let count = |tokens: Option<i32>| tokens.unwrap_or_default().max(0);
    let prompt = usage.prompt_tokens_details.as_ref();
    let completion = usage.completion_tokens_details.as_ref();
    let input = count(usage.prompt_tokens);
    let output = count(usage.completion_tokens);
    UsageInfo {
        input_tokens: input,
        output_tokens: output,
        total_tokens: usage
            .total_tokens
            .map_or_else(|| input.saturating_add(output), |total| total.max(0)),
        thinking_tokens: count(completion.and_then(|details| details.reasoning_tokens)),
        cache_read_tokens: count(prompt.and_then(|details| details.cached_tokens)),
        cache_creation_tokens: count(prompt.and_then(|details| details.cache_creation_tokens)),
        tool_use_prompt_tokens: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_lose_only_the_spaces_between_words() {
        for (text, expected) in [
            (
                r#"{ "z" : 1.0, "a": [1e3 , 12345678901234567890123] }"#,
                r#"{"z":1.0,"a":[1e3,12345678901234567890123]}"#,
            ),
            (
                r#"{"a b": "x \" y\\", "c": "\u2192 d"}"#,
                r#"{"a b":"x \" y\\","c":"\u2192 d"}"#,
            ),
            ("\n{\t}\r\n", "{}"),
        ] {
            assert_eq!(compact(text).as_deref(), Some(expected));
        }
        for text in ["", " ", "{bad", "{} {}"] {
            assert_eq!(compact(text), None, "{text}");
        }
    }
}
