//! A provider in a plan: its connection and its generation settings.
//!
//! A field that an older plan lacks has its default. A default is not written, so that older programs read the plans of
//! configurations that do not use the field.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::is_default;

/// A model and the way to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProviderPlan {
    /// Name in the configuration.
    pub name: String,
    /// `google`, `openai`, …; `scripted` for a recording.
    pub provider: String,
    /// `google-native`, `genai`, `scripted`.
    pub backend: String,
    /// The provider's name of the model.
    pub model: String,
    /// Environment variable of the LLM service that holds the key; empty for none.
    pub api_key_env: String,
    /// An endpoint other than the provider's own; empty for none.
    pub base_url: String,
    /// Name of the recording for `scripted`; empty for the recording that fits any alert.
    #[serde(default)]
    pub transcript: String,
    /// Size of the model's context window in tokens; 0 when it is unknown.
    #[serde(default)]
    pub context_window: u64,
    /// Whether the provider's HTML for its search suggestions is kept in the record of the call.
    #[serde(default)]
    pub keep_search_widget: bool,
    /// The provider's own tools that the agent may use, each once.
    #[serde(default, skip_serializing_if = "is_default")]
    pub native_tools: Vec<NativeTool>,
    /// The handling of a request that has native tools and functions.
    #[serde(default, skip_serializing_if = "is_default")]
    pub native_tools_mode: NativeToolsMode,
    /// The limit on the model's thinking; `None` for the default of the LLM service.
    #[serde(default, skip_serializing_if = "is_default")]
    pub thinking: Option<Thinking>,
    /// The most tokens of an answer; `None` for the provider's default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub max_output_tokens: Option<u32>,
    /// The same for the request after an answer that was cut off at this limit; `None` for no other.
    #[serde(default, skip_serializing_if = "is_default")]
    pub max_output_tokens_after_cut: Option<u32>,
    /// The temperature, from 0 to 2; `None` for the provider's default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub temperature: Option<f64>,
    /// The project of Google Cloud for Vertex AI; empty for the Developer API.
    #[serde(default, skip_serializing_if = "is_default")]
    pub project: String,
    /// The location of Vertex AI; empty for the default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub location: String,
    /// Environment variable of the LLM service that names the file with credentials; empty for none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub credentials_env: String,
    /// Whether a forced conclusion declares the tools, which it may not call. In older plans, and for a provider that
    /// has no word for it, the conclusion has no tools.
    #[serde(default, skip_serializing_if = "is_default")]
    pub keeps_tools: bool,
    /// Settings of the connection for the LLM service: interface, field of the output limit, times.
    #[serde(default, skip_serializing_if = "is_default")]
    pub options: BTreeMap<String, String>,
}

impl ProviderPlan {
    /// The provider for the request after an answer that was cut off at the output limit.
    #[must_use]
    pub fn after_cut(self) -> Self {
        Self {
            max_output_tokens: self.max_output_tokens_after_cut.or(self.max_output_tokens),
            ..self
        }
    }
}

/// A tool that the provider runs by itself while it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum NativeTool {
    /// Searches the web.
    GoogleSearch,
    /// Reads the pages whose addresses the conversation contains.
    UrlContext,
    /// Runs programs that the model writes.
    CodeExecution,
}

crate::words!(pub NativeTool);

/// Whether an agent with tools of MCP servers has native tools, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum NativeToolsMode {
    /// An agent with tools of MCP servers has none.
    #[default]
    Exclusive,
    /// The agent gets both kinds of tools where the model supports it; otherwise the LLM service leaves the native ones
    /// out.
    Combine,
}

crate::words!(pub NativeToolsMode, pub ALL);

/// The limit on a model's thinking, as a level or as a number of tokens. Providers refuse a request with both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    Level(ThinkingLevel),
    /// A number of tokens; 0 turns thinking off where the model supports that.
    Budget(u32),
}

/// A word for how long a model may think, from the shortest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ThinkingLevel {
    Minimal,
    Low,
    Medium,
    High,
}

crate::words!(pub ThinkingLevel, pub ALL);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_that_are_used_are_written_and_all_are_read_again() {
        let plain = ProviderPlan {
            name: "p".to_owned(),
            ..ProviderPlan::default()
        };
        let written = serde_json::to_string(&plain).unwrap();
        let known = "{\"name\":\"p\",\"provider\":\"\",\"backend\":\"\",\"model\":\"\",\"api_key_env\":\"\",\"base_url\":\"\",\
                     \"transcript\":\"\",\"context_window\":0,\"keep_search_widget\":false";
        assert_eq!(written, format!("{known}}}"));
        assert_eq!(
            serde_json::from_str::<ProviderPlan>(&written).unwrap(),
            plain
        );
        let full = ProviderPlan {
            native_tools: vec![
                NativeTool::GoogleSearch,
                NativeTool::UrlContext,
                NativeTool::CodeExecution,
            ],
            native_tools_mode: NativeToolsMode::Combine,
            thinking: Some(Thinking::Level(ThinkingLevel::Minimal)),
            max_output_tokens: Some(9),
            max_output_tokens_after_cut: Some(12),
            temperature: Some(0.7),
            project: "a".to_owned(),
            location: "b".to_owned(),
            credentials_env: "C".to_owned(),
            keeps_tools: true,
            options: [("api".to_owned(), "chat".to_owned())].into(),
            ..plain
        };
        let written = serde_json::to_string(&full).unwrap();
        let expected = "\"native_tools\":[\"google_search\",\"url_context\",\"code_execution\"],\
                        \"native_tools_mode\":\"combine\",\"thinking\":{\"level\":\"minimal\"},\
                        \"max_output_tokens\":9,\"max_output_tokens_after_cut\":12,\"temperature\":0.7,\
                        \"project\":\"a\",\"location\":\"b\",\
                        \"credentials_env\":\"C\",\"keeps_tools\":true,\"options\":{\"api\":\"chat\"}}";
        assert_eq!(written, format!("{known},{expected}"));
        assert_eq!(
            serde_json::from_str::<ProviderPlan>(&written).unwrap(),
            full
        );
        let budget = Some(Thinking::Budget(8_192));
        assert_eq!(serde_json::to_string(&budget).unwrap(), "{\"budget\":8192}");
    }

    #[test]
    fn words_are_written_as_they_are_shown() {
        let tools = [
            NativeTool::GoogleSearch,
            NativeTool::UrlContext,
            NativeTool::CodeExecution,
        ];
        assert_eq!(
            serde_json::to_value(tools).unwrap(),
            serde_json::json!(tools.map(NativeTool::as_str))
        );
        let modes = NativeToolsMode::ALL;
        assert_eq!(
            serde_json::to_value(modes).unwrap(),
            serde_json::json!(modes.map(NativeToolsMode::as_str))
        );
        let levels = ThinkingLevel::ALL;
        assert_eq!(
            serde_json::to_value(levels).unwrap(),
            serde_json::json!(levels.map(ThinkingLevel::as_str))
        );
    }
}
