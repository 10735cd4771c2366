//! Converts a model call into the request message of the protocol.

use std::collections::HashMap;

use crate::engine::ports::{Message, ModelRequest};
use crate::investigation::execution::entry::{ProviderData, ToolCall};
use crate::investigation::plan::{ProviderPlan, ToolSpec};
use crate::llm::proto;

const ACCEPTED: [&str; 3] = [proto::ACCEPT_FINISH, proto::ACCEPT_PROVIDER_DATA, proto::ACCEPT_CODES];

pub(super) fn wire(request: &ModelRequest) -> proto::GenerateRequest {
    proto::GenerateRequest {
        session_id: request.session_id.to_string(),
        execution_id: request.execution_id.to_string(),
        request_id: request.request_id.clone(),
        messages: request.messages.iter().map(message).collect(),
        llm_config: Some(config(&request.provider)),
        tools: request.tools.iter().map(tool).collect(),
        accept: ACCEPTED.map(str::to_owned).to_vec(),
        ..proto::GenerateRequest::default()
    }
}

fn message(message: &Message) -> proto::ConversationMessage {
    proto::ConversationMessage {
        role: message.role.as_str().to_owned(),
        content: message.content.clone(),
        tool_calls: message.tool_calls.iter().map(call).collect(),
        tool_call_id: message.tool_call_id.clone().unwrap_or_default(),
        tool_name: message.tool_name.clone().unwrap_or_default(),
        provider_data: message.provider_data.as_deref().map(provider_data),
        is_error: message.is_error,
    }
}

fn call(call: &ToolCall) -> proto::ToolCall {
    proto::ToolCall { id: call.id.clone(), name: call.tool.clone(), arguments: call.arguments.clone() }
}

fn provider_data(data: &ProviderData) -> proto::ProviderData {
    proto::ProviderData {
        provider: data.provider.clone(),
        model: data.model.clone(),
        format: data.format.clone(),
        payload: data.payload.clone(),
    }
}

fn tool(tool: &ToolSpec) -> proto::ToolDefinition {
    proto::ToolDefinition {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters_schema: tool.parameters_schema.clone(),
    }
}

fn config(provider: &ProviderPlan) -> proto::LlmConfig {
    let mut options = HashMap::new();
    if !provider.transcript.is_empty() {
        options.insert(proto::TRANSCRIPT_OPTION.to_owned(), provider.transcript.clone());
    }
    proto::LlmConfig {
        provider: provider.provider.clone(),
        model: provider.model.clone(),
        api_key_env: provider.api_key_env.clone(),
        base_url: provider.base_url.clone(),
        backend: provider.backend.clone(),
        options,
        ..proto::LlmConfig::default()
    }
}
