//! Converts the events of a stream into the parts of an answer.
//!
//! Text, reasoning, calls and code are written as they arrive. Grounding, finish, provider data and usage are known at
//! the end, and are written in this order. The last usage and the last grounding of a stream count. If an answer goes
//! on in another stream, the tokens of both are added.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::finish::{self, CONTINUATION};
use super::models::Model;
use super::replay::PartRecorder;
use super::tools::Tools;
use super::wire::{
    Chunk, CodeExecutionResult, ExecutableCode, GroundingMetadata, Part, PromptFeedback, Raw,
    UrlContextMetadata, UsageMetadata,
};
use super::{fault, grounding};
use crate::proto::generate_response::Content;
use crate::proto::{
    ACCEPT_OTHER_SOURCES, ACCEPT_URL_RETRIEVALS, CodeExecutionDelta, FinishInfo, TextDelta,
    ThinkingDelta, UsageInfo,
};
use crate::service::provider::finish::Written;
use crate::service::provider::key::ApiKey;
use crate::service::provider::names::tool_call;
use crate::service::provider::repair::Repair;
use crate::service::provider::schemas::Renamed;
use crate::service::provider::{ErrorCode, ProviderError};
use crate::service::writer::ResponseWriter;

/// The parts of an answer that have arrived, and the writer that gets them.
#[derive(Debug)]
pub(super) struct GeminiAnswer<'a> {
    writer: &'a ResponseWriter,
    key: &'a ApiKey,
    /// The properties that have another name at the provider, by the tool's name there.
    renamed: &'a HashMap<String, Renamed>,
    written: Written,
    repair: Repair,
    recorder: PartRecorder,
    grounding: Option<GroundingMetadata>,
    pages: Option<UrlContextMetadata>,
    usage: Option<UsageMetadata>,
    /// The tokens of the streams before this one.
    earlier_usage: Option<UsageInfo>,
    finish_reason: Option<String>,
    finish_message: String,
    model_version: String,
    response_id: String,
    continuation_token: Option<String>,
    /// A part had a signature of the thoughts.
    is_signed: bool,
}

impl<'a> GeminiAnswer<'a> {
    pub(super) fn new(
        writer: &'a ResponseWriter,
        key: &'a ApiKey,
        renamed: &'a HashMap<String, Renamed>,
    ) -> Self {
        Self {
            writer,
            key,
            renamed,
            written: Written::Nothing,
            repair: Repair::default(),
            recorder: PartRecorder::default(),
            grounding: None,
            pages: None,
            usage: None,
            earlier_usage: None,
            finish_reason: None,
            finish_message: String::new(),
            model_version: String::new(),
            response_id: String::new(),
            continuation_token: None,
            is_signed: false,
        }
    }

    /// The key, which no text of the answer may repeat.
    pub(super) fn key(&self) -> &'a ApiKey {
        self.key
    }

    /// Whether a reason to stop has arrived. After it, the response may bring only usage.
    pub(super) fn is_complete(&self) -> bool {
        self.finish_reason.is_some()
    }

    /// The token with which the same answer continues, and which is taken from it. An answer without a reason to stop
    /// was interrupted; it continues from the last token that arrived.
    pub(super) fn take_continuation(&mut self) -> Option<String> {
        if self
            .finish_reason
            .as_deref()
            .is_some_and(|reason| reason != CONTINUATION)
        {
            return None;
        }
        let token = self.continuation_token.take()?;
        self.finish_reason = None;
        self.earlier_usage = self.total_usage();
        self.usage = None;
        Some(token)
    }

    /// The tokens of all streams.
    fn total_usage(&self) -> Option<UsageInfo> {
        let usages = [self.earlier_usage, self.usage.map(tokens)];
        usages.into_iter().flatten().reduce(sum)
    }

    /// Writes what an event brings.
    ///
    /// # Errors
    /// When the event is an error, cannot be parsed, or says that the prompt was blocked.
    pub(super) async fn add(&mut self, event: &str) -> Result<(), ProviderError> {
        let event = self.repair.event(event);
        for chunk in fault::chunks(&event)? {
            self.add_chunk(chunk).await?;
        }
        Ok(())
    }

    async fn add_chunk(&mut self, chunk: Chunk) -> Result<(), ProviderError> {
        if let Some(error) = chunk.error {
            return Err(fault::of_error(error, self.key));
        }
        if let Some(blocked) = chunk
            .prompt_feedback
            .and_then(|feedback| blocked(feedback, self.key))
        {
            return Err(blocked);
        }
        self.usage = chunk.usage_metadata.or(self.usage);
        replace(&mut self.model_version, chunk.model_version);
        replace(&mut self.response_id, chunk.response_id);
        // One candidate is asked for.
        let Some(candidate) = chunk.candidates.unwrap_or_default().into_iter().next() else {
            return Ok(());
        };
        let parts = candidate.content.and_then(|content| content.parts);
        for part in parts.unwrap_or_default() {
            self.add_part(part).await?;
        }
        self.grounding = candidate
            .grounding_metadata
            .or_else(|| self.grounding.take());
        self.pages = candidate.url_context_metadata.or_else(|| self.pages.take());
        self.continuation_token = candidate
            .continuation_token
            .or_else(|| self.continuation_token.take());
        replace(&mut self.finish_message, candidate.finish_message);
        let finish_reason = candidate
            .finish_reason
            .filter(|reason| !reason.is_empty() && reason != "FINISH_REASON_UNSPECIFIED");
        self.finish_reason = finish_reason.or_else(|| self.finish_reason.take());
        Ok(())
    }

    async fn add_part(&mut self, raw: Raw) -> Result<(), ProviderError> {
        let part: Part =
            serde_json::from_str(raw.get()).map_err(|error| ProviderError::unreadable(&error))?;
        self.recorder.add(raw);
        let signature = part
            .thought_signature
            .as_ref()
            .and_then(serde_json::Value::as_str);
        self.is_signed |= signature.is_some_and(|signature| !signature.is_empty());
        if let Some(call) = part.function_call {
            if call.name.trim().is_empty() || call.will_continue == Some(true) {
                return Err(ProviderError::transient(
                    ErrorCode::MalformedToolCall,
                    "The model wrote a tool call without a name, or in pieces",
                ));
            }
            let id = call.id.unwrap_or_default();
            let arguments = call.args.as_deref().map_or("{}", RawValue::get);
            let call = tool_call(id, &call.name, compact(arguments), self.renamed);
            self.write(Written::Calls, Content::ToolCall(call)).await;
        }
        if let Some(code) = part.executable_code {
            let code = Content::CodeExecution(code_part(code));
            self.write(Written::Text, code).await;
        }
        if let Some(result) = part.code_execution_result {
            let result = Content::CodeExecution(code_result(result));
            self.write(Written::Text, result).await;
        }
        match part.text.filter(|text| !text.is_empty()) {
            Some(content) if part.thought.unwrap_or(false) => {
                let thoughts = Content::Thinking(ThinkingDelta { content });
                self.write(Written::Thoughts, thoughts).await;
            }
            Some(content) => {
                let text = Content::Text(TextDelta { content });
                self.write(Written::Text, text).await;
            }
            None => {}
        }
        Ok(())
    }

    /// Writes a part. Calls count more than text, and text counts more than thoughts.
    async fn write(&mut self, written: Written, part: Content) {
        self.written = self.written.max(written);
        self.writer.content(part).await;
    }

    /// Writes what is known at the end, except for the final message. `tools` has those that were not offered.
    ///
    /// # Errors
    /// When the answer has no content, or no reason to stop.
    pub(super) async fn end(self, model: Model<'_>, tools: &Tools) -> Result<(), ProviderError> {
        let usage = self.total_usage();
        let reason = self.finish_reason.ok_or_else(ProviderError::unfinished)?;
        let finish = finish::parse(&reason);
        if let Some(error) = finish.error(&reason, self.written) {
            return Err(error);
        }
        let mut grounding = grounding::convert(self.grounding, self.pages);
        let sources = grounding::sources(&grounding);
        if !self.writer.accepts(ACCEPT_OTHER_SOURCES) {
            grounding.other_sources.clear();
        }
        // Older clients do not support a grounding that has nothing else.
        let has_failed_pages =
            self.writer.accepts(ACCEPT_URL_RETRIEVALS) && !grounding.url_retrievals.is_empty();
        if grounding::has_sources(&grounding)
            || has_failed_pages
            || !grounding.other_sources.is_empty()
        {
            self.writer.content(Content::Grounding(grounding)).await;
        }
        let finish_message = self.key.redact(&self.finish_message);
        let message = match (finish_message.as_str(), tools.left_out.as_str()) {
            (_, "") => finish_message,
            ("", left_out) => format!("left out: {left_out}"),
            (_, left_out) => format!("{finish_message} (left out: {left_out})"),
        };
        let info = FinishInfo {
            reason: finish.word(self.written).to_owned(),
            provider_reason: self.key.redact(&reason),
            message,
            response_id: self.key.redact(&self.response_id),
            model_version: self.key.redact(&self.model_version),
            refused_tools: tools.refused.tools(Some(self.key)),
            signed_reasoning: self.is_signed,
        };
        self.writer.finish(info).await;
        if let Some(data) = self.recorder.provider_data(model, &sources) {
            self.writer.provider_data(data).await;
        }
        if let Some(usage) = usage {
            self.writer.content(Content::Usage(usage)).await;
        }
        Ok(())
    }
}

fn replace(field: &mut String, new: Option<String>) {
    if let Some(new) = new.filter(|new| !new.is_empty()) {
        *field = new;
    }
}

fn blocked(feedback: PromptFeedback, key: &ApiKey) -> Option<ProviderError> {
    let reason = feedback
        .block_reason
        .filter(|reason| !reason.is_empty() && reason != "BLOCK_REASON_UNSPECIFIED")?;
    let details = feedback
        .block_reason_message
        .map(|text| format!(": {}", key.redact(&text)))
        .unwrap_or_default();
    let message = format!("The prompt was blocked: {reason}{details}");
    Some(ProviderError::new(ErrorCode::Blocked, message).with_status(reason))
}

/// Valid JSON without the blanks between its tokens, and with plain characters where texts have them as `\u003c`: the
/// same text is always spelled in the same way. Keys keep their order and numbers their spelling.
fn compact(json: &str) -> String {
    let mut compact = String::with_capacity(json.len());
    let mut is_text = false;
    let mut is_escaped = false;
    let mut rest = json;
    while let Some(character) = rest.chars().next() {
        if is_text
            && !is_escaped
            && character == '\\'
            && let Some((plain, after)) = unescaped(rest)
        {
            compact.push(plain);
            rest = after;
            continue;
        }
        rest = rest.get(character.len_utf8()..).unwrap_or_default();
        if is_text {
            is_text = is_escaped || character != '"';
            is_escaped = !is_escaped && character == '\\';
        } else if character.is_ascii_whitespace() {
            continue;
        } else {
            is_text = character == '"';
        }
        compact.push(character);
    }
    compact
}

/// The character that `\uXXXX` at the beginning of `text` means, and the text after it; `None` for one that JSON wants
/// escaped, or a half of a pair.
fn unescaped(text: &str) -> Option<(char, &str)> {
    let (digits, rest) = text.strip_prefix("\\u")?.split_at_checked(4)?;
    let plain = u32::from_str_radix(digits, 16)
        .ok()
        .and_then(char::from_u32)?;
    let is_plain = !plain.is_control() && !matches!(plain, '"' | '\\' | '\u{2028}' | '\u{2029}');
    is_plain.then_some((plain, rest))
}

fn code_part(code: ExecutableCode) -> CodeExecutionDelta {
    CodeExecutionDelta {
        code: code.code.unwrap_or_default(),
        language: code.language.unwrap_or_default(),
        id: code.id.unwrap_or_default(),
        ..CodeExecutionDelta::default()
    }
}

fn code_result(result: CodeExecutionResult) -> CodeExecutionDelta {
    CodeExecutionDelta {
        result: result.output.unwrap_or_default(),
        outcome: result.outcome.unwrap_or_default(),
        id: result.id.unwrap_or_default(),
        ..CodeExecutionDelta::default()
    }
}

fn sum(a: UsageInfo, b: UsageInfo) -> UsageInfo {
    UsageInfo {
        input_tokens: a.input_tokens.saturating_add(b.input_tokens),
        output_tokens: a.output_tokens.saturating_add(b.output_tokens),
        total_tokens: a.total_tokens.saturating_add(b.total_tokens),
        thinking_tokens: a.thinking_tokens.saturating_add(b.thinking_tokens),
        cache_read_tokens: a.cache_read_tokens.saturating_add(b.cache_read_tokens),
        cache_creation_tokens: a
            .cache_creation_tokens
            .saturating_add(b.cache_creation_tokens),
        tool_use_prompt_tokens: a
            .tool_use_prompt_tokens
            .saturating_add(b.tool_use_prompt_tokens),
    }
}

fn tokens(usage: UsageMetadata) -> UsageInfo {
    let count =
        |tokens: Option<i64>| i32::try_from(tokens.unwrap_or_default().max(0)).unwrap_or(i32::MAX);
    UsageInfo {
        input_tokens: count(usage.prompt_token_count),
        output_tokens: count(usage.candidates_token_count),
        total_tokens: count(usage.total_token_count),
        thinking_tokens: count(usage.thoughts_token_count),
        cache_read_tokens: count(usage.cached_content_token_count),
        cache_creation_tokens: 0,
        tool_use_prompt_tokens: count(usage.tool_use_prompt_token_count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_lose_only_the_blanks_between_tokens() {
        for (json, expected) in [
            (
                r#"{ "b" : "x  \" y\\" , "a": [1, 2.0] }"#,
                r#"{"b":"x  \" y\\","a":[1,2.0]}"#,
            ),
            ("{\n}", "{}"),
            (r#""a \\" "#, r#""a \\""#),
            (
                r#"{"q":"a \u003c b\u00e9 \\u003c \u0022 \ud83d\ude80 \u000a","n":1e2}"#,
                r#"{"q":"a < bé \\u003c \u0022 \ud83d\ude80 \u000a","n":1e2}"#,
            ),
        ] {
            assert_eq!(compact(json), expected);
        }
    }
}
