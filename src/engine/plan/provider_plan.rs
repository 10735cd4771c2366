//! The provider of an agent in the plan: its way to the model, its native tools, and how the model is asked. Pure.

use super::stage_agents::strategy;
use crate::config::{Backend, Generation, LlmProvider, Settings, VertexAi};
use crate::investigation::plan::{NativeTool, NativeToolsMode, ProviderPlan, ToolSpec};

/// The native tools of an agent that may call `tools`. A model of `react` has none.
pub(super) fn native_tools(llm: &LlmProvider, settings: &Settings, tools: &[ToolSpec]) -> Vec<NativeTool> {
    let Generation { native_tools, native_tools_mode, .. } = llm.generation;
    let is_excluded = native_tools_mode == NativeToolsMode::Exclusive && !tools.is_empty();
    if llm.backend != Backend::GoogleNative || strategy(settings).writes_calls() || is_excluded {
        return Vec::new();
    }
    settings.native_tools.over(native_tools).enabled()
}

/// The provider of an agent with these native tools.
pub fn provider_plan(name: &str, llm: &LlmProvider, native_tools: Vec<NativeTool>) -> ProviderPlan {
    let Generation { native_tools_mode, thinking, max_output_tokens, temperature, .. } = llm.generation;
    let VertexAi { project, location, credentials_env } = llm.vertex_ai.clone();
    ProviderPlan {
        name: name.to_owned(),
        provider: llm.provider.clone(),
        backend: llm.backend.as_str().to_owned(),
        model: llm.model.clone(),
        api_key_env: llm.api_key_env.clone(),
        base_url: llm.base_url.clone(),
        transcript: llm.transcript.clone(),
        context_window: llm.context_window,
        keep_search_widget: llm.keep_search_widget,
        native_tools,
        native_tools_mode,
        thinking,
        max_output_tokens,
        temperature,
        project,
        location,
        credentials_env,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::investigation::plan::{Thinking, ThinkingLevel};
    use crate::investigation::testing::read_only_tool;

    fn provider(keys: &str) -> LlmProvider {
        let text = format!("llm_providers: {{a: {{model: m, {keys}}}}}");
        Config::parse("f", &text, &|_| None).unwrap().llm_providers["a"].clone()
    }

    #[test]
    fn every_setting_of_a_model_is_frozen() {
        let llm = provider(
            "provider: google, api_key_env: K, base_url: 'https://h', context_window: 9k, keep_search_widget: true, \
             native_tools_mode: combine, thinking: {level: low}, max_output_tokens: 8k, temperature: 0.3, project: p, \
             location: global, credentials_env: C",
        );
        let expected = ProviderPlan {
            name: "a".to_owned(),
            provider: "google".to_owned(),
            backend: "google-native".to_owned(),
            model: "m".to_owned(),
            api_key_env: "K".to_owned(),
            base_url: "https://h".to_owned(),
            transcript: String::new(),
            context_window: 9_000,
            keep_search_widget: true,
            native_tools: vec![NativeTool::UrlContext],
            native_tools_mode: NativeToolsMode::Combine,
            thinking: Some(Thinking::Level(ThinkingLevel::Low)),
            max_output_tokens: Some(8_000),
            temperature: Some(0.3),
            project: "p".to_owned(),
            location: "global".to_owned(),
            credentials_env: "C".to_owned(),
        };
        assert_eq!(provider_plan("a", &llm, vec![NativeTool::UrlContext]), expected);
    }

    #[test]
    fn an_agent_with_tools_has_native_tools_only_where_they_are_combined() {
        let (search, code) = (NativeTool::GoogleSearch, NativeTool::CodeExecution);
        let google = "provider: google, native_tools: {google_search: true}";
        let combined = "provider: google, native_tools: {google_search: true}, native_tools_mode: combine";
        let genai = "provider: google, backend: genai";
        for (keys, settings, tools, expected) in [
            (google, "{}", 0, vec![search]),
            (google, "{}", 1, vec![]),
            (combined, "{}", 1, vec![search]),
            (combined, "{native_tools: {code_execution: true}}", 1, vec![search, code]),
            (google, "{native_tools: {google_search: false, code_execution: true}}", 0, vec![code]),
            (google, "{iteration_strategy: synthesis}", 0, vec![search]),
            (combined, "{iteration_strategy: react}", 0, vec![]),
            (genai, "{native_tools: {google_search: true}}", 0, vec![]),
            ("provider: openai", "{native_tools: {google_search: true}}", 0, vec![]),
        ] {
            let agents = Config::parse("f", &format!("agents: {{a: {settings}}}"), &|_| None).unwrap().agents;
            let offered = vec![read_only_tool("k8s.get"); tools];
            let native = native_tools(&provider(keys), &agents["a"].settings, &offered);
            assert_eq!(native, expected, "{keys} {settings} {tools}");
        }
    }
}
