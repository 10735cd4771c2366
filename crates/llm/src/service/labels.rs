//! The closed sets of metric labels: providers, types of errors, reasons of an end. Those of the conventions of
//! OpenTelemetry are in `engine/trace/gen_ai.rs`.
//!
//! A request names provider and model freely, so a word that is not known becomes `other`, and the model is no label.

use super::provider::known;
use crate::proto::GenerateRequest;
use tarsy_engine::trace::gen_ai::{self, OTHER_ERROR};

pub use tarsy_engine::trace::gen_ai::{FINISH_REASONS, finish_reason};

/// The provider of a request, as this project and as OpenTelemetry call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProviderLabel {
    /// The word in `llm_config.provider`.
    pub(super) word: &'static str,
    /// The value of `gen_ai.provider.name`.
    pub(super) gen_ai: &'static str,
}

const OTHER: &str = "other";
const SCRIPTED: &str = "scripted";

impl ProviderLabel {
    pub(super) fn of(request: &GenerateRequest) -> Self {
        let Some(config) = &request.llm_config else {
            return Self::new(OTHER, "");
        };
        let word = match (config.provider.as_str(), config.backend.as_str()) {
            (_, SCRIPTED) | (SCRIPTED, _) => SCRIPTED,
            ("", "" | "google-native") => known::GOOGLE.name,
            (word, _) => known::by_name(word).map_or(OTHER, |known| known.name),
        };
        Self::new(word, &config.project)
    }

    fn new(word: &'static str, project: &str) -> Self {
        let gen_ai = gen_ai::provider_name(word, project);
        Self { word, gen_ai }
    }
}

/// The codes of the protocol, and the ends that have none.
pub const ERROR_TYPES: [&str; 22] = [
    "credentials",
    "invalid_request",
    "provider_error",
    "empty_response",
    "partial_stream_error",
    "invalid_backend",
    "internal",
    "rate_limited",
    "unavailable",
    "context_window_exceeded",
    "blocked",
    "thought_signature",
    "model_not_found",
    "deadline_exceeded",
    "cancelled",
    "max_tokens",
    "malformed_tool_call",
    "max_retries",
    "stream_broken",
    "shutting_down",
    "abandoned",
    OTHER,
];

/// The values of `error.type`. A histogram has as many series as buckets for each of them.
pub const ERROR_CLASSES: [&str; 7] = [
    "",
    "credentials",
    "deadline_exceeded",
    "invalid_request",
    "rate_limited",
    "unavailable",
    OTHER_ERROR,
];

/// The value of `error.type` for a code.
pub(super) fn error_class(code: &str) -> &'static str {
    ERROR_CLASSES
        .into_iter()
        .find(|class| *class == code)
        .unwrap_or(OTHER_ERROR)
}

pub(super) fn error_type(code: &str) -> &'static str {
    known_word(&ERROR_TYPES, code)
}

fn known_word(words: &[&'static str], text: &str) -> &'static str {
    words
        .iter()
        .copied()
        .find(|word| *word == text)
        .unwrap_or(OTHER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::LlmConfig;

    #[test]
    fn a_word_of_a_request_is_never_a_label_unless_it_is_known() {
        let of = |provider: &str, backend: &str, project: &str| {
            let [provider, backend, project] = [provider, backend, project].map(str::to_owned);
            let llm_config = Some(LlmConfig {
                provider,
                backend,
                project,
                ..LlmConfig::default()
            });
            let label = ProviderLabel::of(&GenerateRequest {
                llm_config,
                ..GenerateRequest::default()
            });
            (label.word, label.gen_ai)
        };
        assert_eq!(of("google", "google-native", ""), ("google", "gcp.gemini"));
        assert_eq!(of("", "", "p-1"), ("google", "gcp.vertex_ai"));
        assert_eq!(of("openai", "genai", "x"), ("openai", "openai"));
        assert_eq!(of("xai", "genai", ""), ("xai", "x_ai"));
        assert_eq!(of("anything", "scripted", ""), ("scripted", "scripted"));
        assert_eq!(of("sk-secret", "genai", ""), ("other", "other"));
        assert_eq!(ProviderLabel::of(&GenerateRequest::default()).word, "other");
        assert_eq!(
            (error_type("rate_limited"), error_type("sk-secret")),
            ("rate_limited", "other")
        );
        assert_eq!(
            (error_class(""), error_class("rate_limited")),
            ("", "rate_limited")
        );
        assert_eq!(
            (error_class("stream_broken"), error_class("sk-secret")),
            ("_OTHER", "_OTHER")
        );
        assert_eq!(
            (finish_reason("stop"), finish_reason("")),
            ("stop", "other")
        );
    }
}
