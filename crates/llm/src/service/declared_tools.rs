//! Tools of a request that are declared and may not be called: those of earlier requests, in a conclusion.
//!
//! For a provider that has a word for it they become tools with `tool_choice: none`, so that the request keeps its
//! beginning. For any other one the request has no tools.

use super::labels::ProviderLabel;
use crate::proto::GenerateRequest;
use tarsy_core::vocabulary::provider;

/// The word in `tool_choice` that forbids every call.
pub(super) const NONE: &str = "none";

/// The request with its declared tools as the backends read them.
pub(super) fn resolved(mut request: GenerateRequest) -> GenerateRequest {
    let declared = std::mem::take(&mut request.declared_tools);
    let word = ProviderLabel::from_request(&request).word;
    let forbids_calls =
        provider::named(word).is_some_and(|provider| provider.protocol.forbids_calls());
    if request.tools.is_empty() && !declared.is_empty() && forbids_calls {
        request.tools = declared;
        NONE.clone_into(&mut request.tool_choice);
    }
    request
}

/// The request without tools that may not be called; `None` if it has none.
pub(super) fn without(request: &GenerateRequest) -> Option<GenerateRequest> {
    let is_closed = request.tool_choice == NONE && !request.tools.is_empty();
    is_closed.then(|| GenerateRequest {
        tools: Vec::new(),
        tool_choice: String::new(),
        ..request.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{LlmConfig, ToolDefinition};

    fn tool(name: &str) -> ToolDefinition {
        ToolDefinition {
            name: name.into(),
            ..ToolDefinition::default()
        }
    }

    fn sent(provider: &str, backend: &str, tools: &[&str]) -> (Vec<String>, String, usize) {
        let request = resolved(GenerateRequest {
            llm_config: Some(LlmConfig {
                provider: provider.into(),
                backend: backend.into(),
                ..LlmConfig::default()
            }),
            tools: tools.iter().map(|name| tool(name)).collect(),
            declared_tools: vec![tool("s.a"), tool("s.b")],
            ..GenerateRequest::default()
        });
        let names = request.tools.into_iter().map(|tool| tool.name).collect();
        (names, request.tool_choice, request.declared_tools.len())
    }

    #[test]
    fn declared_tools_stay_where_a_word_forbids_their_calls() {
        let both = ["s.a".to_owned(), "s.b".to_owned()];
        for (provider, backend) in [
            ("google", "google-native"),
            ("", ""),
            ("google", "langchain"),
            ("anthropic", "langchain"),
            ("openai", "genai"),
            ("azure", "genai"),
        ] {
            assert_eq!(
                sent(provider, backend, &[]),
                (both.to_vec(), "none".to_owned(), 0)
            );
        }
        for (provider, backend) in [
            ("bedrock", "genai"),
            ("groq", "genai"),
            ("litellm", "genai"),
            ("ollama", "genai"),
            ("scripted", "scripted"),
            ("unheard-of", "genai"),
        ] {
            assert_eq!(sent(provider, backend, &[]), (Vec::new(), String::new(), 0));
        }
        let callable = sent("anthropic", "genai", &["s.c"]);
        assert_eq!(callable, (vec!["s.c".to_owned()], String::new(), 0));
    }
}
