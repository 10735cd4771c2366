//! The provider of an agent in the plan: its way to the model, its native tools, and how the model is asked. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use super::stage_agents;
use tarsy_config::url_pattern::is_own_address;
use tarsy_config::{Backend, Connection, LlmProvider, Settings};
use tarsy_core::plan::option;
use tarsy_core::plan::{NativeTool, NativeToolsMode, ProviderPlan, Strategy, ToolSpec};
use tarsy_core::vocabulary::provider::{self, GOOGLE};

/// The provider of an agent with these settings, which may call `tools`.
pub(super) fn of_agent(
    name: &str,
    llm: &LlmProvider,
    settings: &Settings,
    tools: &[ToolSpec],
) -> ProviderPlan {
    let strategy = stage_agents::strategy(settings);
    let backend = backend(llm, strategy);
    let has_native = backend == Backend::GoogleNative && !strategy.writes_calls();
    let native_tools = if has_native {
        native_tools(llm, settings, tools)
    } else {
        Vec::new()
    };
    ProviderPlan {
        keeps_tools: strategy.binds_tools() && forbids_calls(llm),
        ..provider_plan(name, llm, backend, native_tools)
    }
}

/// Whether a request can declare tools that may not be called. A gateway at another address may refuse such a request.
fn forbids_calls(llm: &LlmProvider) -> bool {
    let Some(provider) = provider::named(&llm.provider) else {
        return false;
    };
    let is_own = llm.base_url.is_empty() || is_own_address(&llm.base_url, provider);
    is_own && provider.protocol.forbids_calls()
}

/// The backend of a strategy. For Gemini the strategy selects it: those with `native-thinking` in their name, and a
/// single call, have Google's own tools.
pub fn backend(llm: &LlmProvider, strategy: Strategy) -> Backend {
    let is_google = llm.backend.is_none() && llm.provider == GOOGLE.name;
    match strategy {
        Strategy::React | Strategy::Synthesis if is_google => Backend::Genai,
        Strategy::React
        | Strategy::Synthesis
        | Strategy::NativeThinking
        | Strategy::SynthesisNativeThinking
        | Strategy::SingleCall => llm.backend(),
    }
}

/// The native tools of an agent that may call `tools`.
fn native_tools(llm: &LlmProvider, settings: &Settings, tools: &[ToolSpec]) -> Vec<NativeTool> {
    let generation = &llm.generation;
    if generation.native_tools_mode == NativeToolsMode::Exclusive && !tools.is_empty() {
        return Vec::new();
    }
    settings
        .native_tools
        .over(generation.native_tools)
        .enabled()
}

/// A provider with this backend and these native tools.
pub fn provider_plan(
    name: &str,
    llm: &LlmProvider,
    backend: Backend,
    native_tools: Vec<NativeTool>,
) -> ProviderPlan {
    let generation = &llm.generation;
    let vertex_ai = llm.vertex_ai.clone();
    ProviderPlan {
        name: name.to_owned(),
        provider: llm.provider.clone(),
        backend: backend.as_str().to_owned(),
        model: llm.model.clone(),
        api_key_env: llm.api_key_env.clone(),
        base_url: llm.base_url.clone(),
        transcript: llm.transcript.clone(),
        context_window: llm.context_window,
        keep_search_widget: llm.keep_search_widget,
        native_tools,
        native_tools_mode: generation.native_tools_mode,
        thinking: generation.thinking,
        max_output_tokens: generation.max_output_tokens,
        max_output_tokens_after_cut: generation.max_output_tokens_after_cut,
        temperature: generation.temperature,
        project: vertex_ai.project,
        location: vertex_ai.location,
        credentials_env: vertex_ai.credentials_env,
        keeps_tools: false,
        options: options(&llm.connection),
    }
}

/// The keys of a connection that are set, as options of a request.
fn options(connection: &Connection) -> BTreeMap<String, String> {
    let api = connection.api.map(|api| api.as_str().to_owned());
    let field = connection.output_limit_field;
    let millis = |time: Option<Duration>| time.map(|time| time.as_millis().to_string());
    [
        (option::API, api),
        (
            option::OUTPUT_LIMIT_FIELD,
            field.map(|field| field.as_str().to_owned()),
        ),
        (
            option::FIRST_CHUNK_TIMEOUT,
            millis(connection.first_chunk_timeout),
        ),
        (option::STALL_TIMEOUT, millis(connection.stall_timeout)),
        (option::ANSWER_TIMEOUT, millis(connection.answer_timeout)),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), value?)))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tarsy_config::Config;
    use tarsy_core::plan::{Thinking, ThinkingLevel};
    use tarsy_core::testing::read_only_tool;

    fn provider(keys: &str) -> LlmProvider {
        let text = format!("llm_providers: {{a: {{model: m, {keys}}}}}");
        Config::parse("f", &text, &|_| None).unwrap().llm_providers["a"].clone()
    }

    #[test]
    fn every_setting_of_a_model_is_frozen() {
        let llm = provider(
            "provider: google, api_key_env: K, base_url: 'https://h', context_window: 9k, keep_search_widget: true, \
             native_tools_mode: combine, thinking: {level: low}, max_output_tokens: 8k, max_output_tokens_after_cut: 16k, \
             temperature: 0.3, project: p, \
             location: global, credentials_env: C, first_chunk_timeout: 5m, stall_timeout: 90s, answer_timeout: 1h",
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
            max_output_tokens_after_cut: Some(16_000),
            temperature: Some(0.3),
            project: "p".to_owned(),
            location: "global".to_owned(),
            credentials_env: "C".to_owned(),
            keeps_tools: false,
            options: [
                ("first_chunk_timeout_ms", "300000"),
                ("stall_timeout_ms", "90000"),
                ("answer_timeout_ms", "3600000"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        };
        assert_eq!(
            provider_plan("a", &llm, llm.backend(), vec![NativeTool::UrlContext]),
            expected
        );
    }

    #[test]
    fn a_conclusion_keeps_its_tools_where_the_provider_itself_can_forbid_calls() {
        for (keys, strategy, expected) in [
            ("provider: google", "native-thinking", true),
            ("provider: google, project: p", "native-thinking", true),
            ("provider: openai", "native-thinking", true),
            ("provider: anthropic", "native-thinking", true),
            ("provider: anthropic", "react", false),
            ("provider: anthropic", "synthesis", false),
            (
                "provider: anthropic, base_url: 'https://api.anthropic.com/v1'",
                "native-thinking",
                true,
            ),
            (
                "provider: anthropic, base_url: 'https://eu-west1-aiplatform.googleapis.com'",
                "native-thinking",
                true,
            ),
            (
                "provider: anthropic, base_url: 'http://litellm:4000'",
                "native-thinking",
                false,
            ),
            (
                "provider: azure, base_url: 'https://team.openai.azure.com'",
                "native-thinking",
                true,
            ),
            (
                "provider: azure, base_url: 'https://gateway.test'",
                "native-thinking",
                false,
            ),
            (
                "provider: openai, base_url: 'http://127.0.0.1:11434/v1'",
                "native-thinking",
                false,
            ),
            ("provider: groq", "native-thinking", false),
            (
                "provider: bedrock, base_url: 'https://bedrock-runtime.eu-central-1.amazonaws.com'",
                "native-thinking",
                false,
            ),
            (
                "provider: vllm, base_url: 'http://vllm:8000'",
                "native-thinking",
                false,
            ),
            ("provider: scripted", "native-thinking", false),
        ] {
            let settings = format!("agents: {{a: {{iteration_strategy: '{strategy}'}}}}");
            let agents = Config::parse("f", &settings, &|_| None).unwrap().agents;
            let plan = of_agent("p", &provider(keys), &agents["a"].settings, &[]);
            assert_eq!(plan.keeps_tools, expected, "{keys} {strategy}");
        }
    }

    #[test]
    fn the_strategy_selects_the_backend_of_gemini_unless_one_is_configured() {
        let selected = |keys: &str, strategy: &str| {
            let settings = format!("agents: {{a: {{iteration_strategy: '{strategy}'}}}}");
            let agents = Config::parse("f", &settings, &|_| None).unwrap().agents;
            of_agent("p", &provider(keys), &agents["a"].settings, &[]).backend
        };
        for (strategy, expected) in [
            ("react", "genai"),
            ("native-thinking", "google-native"),
            ("synthesis", "genai"),
            ("synthesis-native-thinking", "google-native"),
            ("", "google-native"),
        ] {
            assert_eq!(
                selected("provider: google", strategy),
                expected,
                "{strategy}"
            );
            assert_eq!(
                selected("provider: google, backend: google-native", strategy),
                "google-native",
                "{strategy}"
            );
            assert_eq!(
                selected("provider: google, backend: langchain", strategy),
                "genai",
                "{strategy}"
            );
            assert_eq!(
                selected("provider: anthropic", strategy),
                "genai",
                "{strategy}"
            );
        }
    }

    #[test]
    fn an_agent_with_tools_has_native_tools_only_where_they_are_combined() {
        let search = NativeTool::GoogleSearch;
        let code = NativeTool::CodeExecution;
        let google = "provider: google, native_tools: {google_search: true}";
        let combined =
            "provider: google, native_tools: {google_search: true}, native_tools_mode: combine";
        let native =
            "provider: google, backend: google-native, native_tools: {google_search: true}";
        let genai = "provider: google, backend: genai";
        for (keys, settings, tools, expected) in [
            (google, "{}", 0, vec![search]),
            (google, "{}", 1, vec![]),
            (combined, "{}", 1, vec![search]),
            (
                combined,
                "{native_tools: {code_execution: true}}",
                1,
                vec![search, code],
            ),
            (
                google,
                "{native_tools: {google_search: false, code_execution: true}}",
                0,
                vec![code],
            ),
            (google, "{iteration_strategy: synthesis}", 0, vec![]),
            (
                google,
                "{iteration_strategy: synthesis-native-thinking}",
                0,
                vec![search],
            ),
            (native, "{iteration_strategy: synthesis}", 0, vec![search]),
            (native, "{iteration_strategy: react}", 0, vec![]),
            (combined, "{iteration_strategy: react}", 0, vec![]),
            (genai, "{native_tools: {google_search: true}}", 0, vec![]),
            (
                "provider: openai",
                "{native_tools: {google_search: true}}",
                0,
                vec![],
            ),
        ] {
            let agents = Config::parse("f", &format!("agents: {{a: {settings}}}"), &|_| None)
                .unwrap()
                .agents;
            let offered = vec![read_only_tool("k8s.get"); tools];
            let plan = of_agent("p", &provider(keys), &agents["a"].settings, &offered);
            assert_eq!(plan.native_tools, expected, "{keys} {settings} {tools}");
        }
    }
}
