//! Every name of OpenTelemetry's conventions for generative AI: spans, attributes, operations and providers.
//!
//! <https://opentelemetry.io/docs/specs/semconv/gen-ai/>, and the MCP part of it for tools. The metrics `gen_ai_…` have
//! their names in `telemetry/names/`, as all metrics do; their values come from here.

use serde_json::{Value, json};
use strum::VariantNames;
use tracing::field::Empty;
use tracing::{Span, info_span};

use super::{TARGET, captures_content, fail};
use crate::ports::{Message, ModelError, ModelRequest, ToolReply};
use tarsy_core::execution::entry::{Answer, Finish, ToolCall};
use tarsy_core::ids::ExecutionId;
use tarsy_core::plan::ToolSpec;
use tarsy_core::vocabulary::provider::gen_ai_name;
use tarsy_core::vocabulary::{ErrorCode, OTHER, joined};

/// The value of `gen_ai.operation.name` for a model call.
pub const CHAT: &str = "chat";
/// The reasons for the end of an answer; `unknown` is one that the LLM service does not know, and `other` represents
/// every other word.
pub const FINISH_REASONS: [&str; 11] = joined(&[&["unknown"], Finish::VARIANTS]);
/// Shown for a tool that the plan does not have: its name is a word of the model.
const UNKNOWN_TOOL: &str = "unknown";

/// A reason for the end of an answer as one of [`FINISH_REASONS`].
pub fn finish_reason(reason: &str) -> &'static str {
    FINISH_REASONS
        .into_iter()
        .find(|known| *known == reason)
        .unwrap_or(OTHER)
}

/// One agent's run, in this worker.
pub fn agent(name: &str, execution_id: ExecutionId) -> Span {
    info_span!(
        target: TARGET, "agent",
        otel.name = format!("invoke_agent {name}"), %execution_id,
        gen_ai.operation.name = "invoke_agent", gen_ai.agent.name = name,
        tarsy.agent.iterations = Empty, tarsy.agent.end = Empty,
    )
}

/// A model call as the worker sees it, from the request to the last piece of the answer.
pub fn chat(request: &ModelRequest) -> Span {
    let provider = &request.provider;
    let span = info_span!(
        target: TARGET, "chat",
        otel.name = format!("{CHAT} {}", provider.model), otel.kind = "client",
        gen_ai.operation.name = CHAT, gen_ai.provider.name = gen_ai_name(&provider.provider, &provider.project),
        gen_ai.request.model = provider.model, gen_ai.conversation.id = %request.session_id,
        gen_ai.usage.input_tokens = Empty, gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty, gen_ai.response.finish_reasons = Empty,
        gen_ai.input.messages = Empty, gen_ai.output.messages = Empty, error.type = Empty,
    );
    if span.in_scope(captures_content) {
        span.record(
            "gen_ai.input.messages",
            messages(&request.messages).to_string(),
        );
    }
    span
}

/// Adds the outcome to the span of a model call.
pub fn answered(span: &Span, outcome: &Result<Answer, ModelError>) {
    let answer = match outcome {
        Ok(answer) => answer,
        Err(ModelError::Failed { code, .. }) => return fail(span, ErrorCode::parse(code).as_str()),
        Err(ModelError::Unavailable(_) | ModelError::Broke(_)) => return fail(span, "unavailable"),
    };
    span.record("gen_ai.usage.input_tokens", answer.usage.input_tokens);
    span.record("gen_ai.usage.output_tokens", answer.usage.output_tokens);
    span.record(
        "gen_ai.usage.cache_read.input_tokens",
        answer.usage.cached_tokens,
    );
    span.record("gen_ai.response.finish_reasons", answer.finish.as_str());
    if span.in_scope(captures_content) {
        span.record(
            "gen_ai.output.messages",
            json!([output(answer)]).to_string(),
        );
    }
}

/// A request of the LLM service to a provider. `attempt` counts from 1.
pub fn provider_attempt(provider: &str, model: &str, attempt: u32) -> Span {
    info_span!(
        target: TARGET, "attempt",
        otel.name = format!("{CHAT} {model}"), otel.kind = "client",
        gen_ai.operation.name = CHAT, gen_ai.provider.name = provider, gen_ai.request.model = model,
        tarsy.attempt = attempt, error.type = Empty,
    )
}

/// A tool call, sent once or, after a lost connection, twice. `call` is the stored one, whose arguments are masked.
pub(crate) fn execute_tool(call: &ToolCall, spec: Option<&ToolSpec>) -> Span {
    let name = spec.map_or(UNKNOWN_TOOL, |spec| spec.name.as_str());
    let span = info_span!(
        target: TARGET, "tool",
        otel.name = format!("execute_tool {name}"), otel.kind = "client",
        gen_ai.operation.name = "execute_tool", gen_ai.tool.name = name, gen_ai.tool.type = "function",
        mcp.method.name = "tools/call", tarsy.mcp.server = spec.map(ToolSpec::server),
        gen_ai.tool.call.arguments = Empty, gen_ai.tool.call.result = Empty, error.type = Empty,
    );
    if span.in_scope(captures_content) {
        span.record("gen_ai.tool.call.arguments", call.arguments.as_str());
    }
    span
}

/// Adds the outcome to the span of a tool call.
pub fn replied(span: &Span, reply: &ToolReply) {
    match reply {
        ToolReply::Answered { content, is_error } => {
            if *is_error {
                fail(span, "tool_error");
            }
            if span.in_scope(captures_content) {
                span.record("gen_ai.tool.call.result", content.as_str());
            }
        }
        ToolReply::Refused { .. } | ToolReply::NotSent { .. } => fail(span, "not_sent"),
        ToolReply::NoAnswer { timeout: true, .. } => fail(span, "timeout"),
        ToolReply::NoAnswer { timeout: false, .. } => fail(span, "connection_lost"),
    }
}

/// The messages of a request in the form of the conventions.
fn messages(messages: &[Message]) -> Value {
    let shown = messages.iter().map(|message| {
        let mut parts = vec![match &message.tool_call_id {
            Some(id) => {
                json!({"type": "tool_call_response", "id": id, "response": message.content})
            }
            None => json!({"type": "text", "content": message.content}),
        }];
        parts.extend(message.tool_calls.iter().map(call));
        json!({"role": message.role.as_str(), "parts": parts})
    });
    shown.collect()
}

fn output(answer: &Answer) -> Value {
    let mut parts = vec![json!({"type": "text", "content": answer.text})];
    parts.extend(answer.calls.iter().map(call));
    json!({"role": "assistant", "parts": parts, "finish_reason": answer.finish})
}

fn call(call: &ToolCall) -> Value {
    json!({"type": "tool_call", "id": call.id, "name": call.tool, "arguments": call.arguments})
}
