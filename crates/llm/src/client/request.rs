//! Converts a model call into the request message of the protocol.

use std::collections::HashMap;

use crate::proto;
use tarsy_core::execution::entry::{ProviderData, ToolCall};
use tarsy_core::plan::{ProviderPlan, Thinking, ToolSpec};
use tarsy_engine::ports::{Message, ModelRequest};

const ACCEPTED: [&str; 6] = [
    proto::ACCEPT_FINISH,
    proto::ACCEPT_PROVIDER_DATA,
    proto::ACCEPT_CODES,
    proto::ACCEPT_RETRY,
    proto::ACCEPT_URL_RETRIEVALS,
    proto::ACCEPT_OTHER_SOURCES,
];

/// The message that is sent for a request.
pub fn wire(request: &ModelRequest) -> proto::GenerateRequest {
    proto::GenerateRequest {
        session_id: request.session_id.to_string(),
        execution_id: request.execution_id.to_string(),
        request_id: request.request_id.clone(),
        messages: request.messages.iter().map(message).collect(),
        llm_config: Some(config(&request.provider)),
        tools: request.tools.iter().map(tool).collect(),
        declared_tools: request.declared_tools.iter().map(tool).collect(),
        clear_cache: request.clear_cache,
        accept: ACCEPTED.map(str::to_owned).to_vec(),
        max_output_tokens: request.provider.max_output_tokens.unwrap_or_default(),
        thinking: request.provider.thinking.map(thinking),
        ..proto::GenerateRequest::default()
    }
}

fn thinking(thinking: Thinking) -> proto::ThinkingConfig {
    let (level, budget) = match thinking {
        Thinking::Level(level) => (level.as_str().to_owned(), None),
        Thinking::Budget(tokens) => {
            let tokens = i32::try_from(tokens).unwrap_or(i32::MAX);
            (String::new(), Some(tokens))
        }
    };
    proto::ThinkingConfig {
        budget,
        level,
        include_thoughts: None,
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
    proto::ToolCall {
        id: call.id.clone(),
        name: call.tool.clone(),
        arguments: call.arguments.clone(),
    }
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

/// The provider of a call, and how the model is asked.
pub(super) fn config(provider: &ProviderPlan) -> proto::LlmConfig {
    let mut options: HashMap<_, _> = provider.options.clone().into_iter().collect();
    if !provider.transcript.is_empty() {
        options.insert(
            proto::TRANSCRIPT_OPTION.to_owned(),
            provider.transcript.clone(),
        );
    }
    if let Some(temperature) = provider.temperature {
        options.insert(
            proto::TEMPERATURE_OPTION.to_owned(),
            temperature.to_string(),
        );
    }
    if !provider.native_tools.is_empty() {
        options.insert(
            proto::NATIVE_TOOLS_OPTION.to_owned(),
            provider.native_tools_mode.as_str().to_owned(),
        );
    }
    proto::LlmConfig {
        provider: provider.provider.clone(),
        model: provider.model.clone(),
        api_key_env: provider.api_key_env.clone(),
        base_url: provider.base_url.clone(),
        backend: wire_backend(&provider.backend).to_owned(),
        native_tools: provider
            .native_tools
            .iter()
            .map(|tool| (tool.as_str().to_owned(), true))
            .collect(),
        project: provider.project.clone(),
        location: provider.location.clone(),
        credentials_env: provider.credentials_env.clone(),
        options,
    }
}

/// The word for a backend on the wire: the existing service has `genai` by its older name only.
fn wire_backend(backend: &str) -> &str {
    if backend == "genai" {
        proto::LANGCHAIN
    } else {
        backend
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;
    use tarsy_core::execution::entry::Role;
    use tarsy_core::ids::{ExecutionId, SessionId};
    use tarsy_core::plan::{NativeTool, NativeToolsMode, ThinkingLevel};

    fn sent(provider: ProviderPlan) -> proto::GenerateRequest {
        wire(&request_to(provider))
    }

    fn request_to(provider: ProviderPlan) -> ModelRequest {
        ModelRequest {
            session_id: SessionId(Uuid::nil()),
            execution_id: ExecutionId(Uuid::nil()),
            request_id: "r".to_owned(),
            provider,
            messages: Vec::new(),
            tools: Vec::new(),
            declared_tools: Vec::new(),
            clear_cache: false,
            timeout: Duration::from_secs(1),
        }
    }

    #[test]
    fn a_request_carries_every_setting_of_its_provider() {
        let request = sent(ProviderPlan {
            name: "gemini".to_owned(),
            provider: "google".to_owned(),
            backend: "google-native".to_owned(),
            model: "m".to_owned(),
            api_key_env: "K".to_owned(),
            base_url: "https://h".to_owned(),
            transcript: "t".to_owned(),
            context_window: 9_000,
            keep_search_widget: true,
            native_tools: vec![
                NativeTool::GoogleSearch,
                NativeTool::UrlContext,
                NativeTool::CodeExecution,
            ],
            native_tools_mode: NativeToolsMode::Combine,
            thinking: Some(Thinking::Level(ThinkingLevel::Medium)),
            max_output_tokens: Some(8_192),
            max_output_tokens_after_cut: Some(16_384),
            temperature: Some(0.7),
            project: "p".to_owned(),
            location: "global".to_owned(),
            credentials_env: "C".to_owned(),
            keeps_tools: true,
            options: [("api".to_owned(), "chat".to_owned())].into(),
        });
        let text = |text: &str| text.to_owned();
        let expected = proto::LlmConfig {
            provider: text("google"),
            model: text("m"),
            api_key_env: text("K"),
            credentials_env: text("C"),
            base_url: text("https://h"),
            native_tools: ["google_search", "url_context", "code_execution"]
                .map(|tool| (text(tool), true))
                .into(),
            project: text("p"),
            location: text("global"),
            backend: text("google-native"),
            options: [
                ("transcript", "t"),
                ("temperature", "0.7"),
                ("native_tools", "combine"),
                ("api", "chat"),
            ]
            .map(|(name, value)| (text(name), text(value)))
            .into(),
        };
        assert_eq!(request.llm_config, Some(expected));
        assert_eq!(request.max_output_tokens, 8_192);
        let thinking = proto::ThinkingConfig {
            level: text("medium"),
            ..proto::ThinkingConfig::default()
        };
        assert_eq!(request.thinking, Some(thinking));
    }

    #[test]
    fn declared_tools_are_no_tools_of_a_service_that_does_not_know_them() {
        let spec = tarsy_core::testing::read_only_tool("k8s.get");
        let request = wire(&ModelRequest {
            declared_tools: vec![spec.clone()],
            ..request_to(ProviderPlan::default())
        });
        assert_eq!(
            (request.tools.len(), request.declared_tools),
            (0, vec![tool(&spec)])
        );
        assert_eq!(request.tool_choice, "");
    }

    #[test]
    fn a_message_keeps_the_failure_of_a_call_and_the_state_of_the_provider() {
        let state = ProviderData {
            provider: "google".to_owned(),
            model: "m".to_owned(),
            format: "f".to_owned(),
            payload: vec![1, 2],
        };
        let sent = message(&Message {
            role: Role::Tool,
            content: "refused".to_owned(),
            tool_calls: Vec::new(),
            tool_call_id: Some("c1".to_owned()),
            tool_name: Some("k8s.get".to_owned()),
            is_error: true,
            provider_data: Some(Box::new(state)),
        });
        let kept = sent
            .provider_data
            .as_ref()
            .map(|data| (data.provider.as_str(), data.payload.to_vec()));
        assert_eq!((sent.is_error, kept), (true, Some(("google", vec![1, 2]))));
    }

    #[test]
    fn a_backend_is_named_as_every_service_has_it() {
        for (backend, word) in [
            ("genai", "langchain"),
            ("google-native", "google-native"),
            ("scripted", "scripted"),
        ] {
            let request = sent(ProviderPlan {
                backend: backend.to_owned(),
                ..ProviderPlan::default()
            });
            assert_eq!(request.llm_config.unwrap().backend, word);
        }
    }

    #[test]
    fn a_request_says_nothing_about_settings_that_are_not_configured() {
        let request = sent(ProviderPlan::default());
        assert_eq!((request.max_output_tokens, &request.thinking), (0, &None));
        assert_eq!(request.llm_config, Some(proto::LlmConfig::default()));
        let budget = sent(ProviderPlan {
            thinking: Some(Thinking::Budget(0)),
            ..ProviderPlan::default()
        });
        let thinking = proto::ThinkingConfig {
            budget: Some(0),
            ..proto::ThinkingConfig::default()
        };
        assert_eq!(budget.thinking, Some(thinking));
    }
}
