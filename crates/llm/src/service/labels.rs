//! The closed sets of metric labels: providers and types of errors. Their words are in
//! [`tarsy_core::vocabulary`].
//!
//! A request names provider and model freely, so an unknown word becomes `other`, and the model is not a label.

use super::provider::known;
use crate::proto::GenerateRequest;
use tarsy_core::vocabulary::provider::{GOOGLE, gen_ai_name};
use tarsy_core::vocabulary::{ErrorCode, OTHER};

/// The provider of a request, as this project and as OpenTelemetry call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProviderLabel {
    /// The word in `llm_config.provider`.
    pub(super) word: &'static str,
    /// The value of `gen_ai.provider.name`.
    pub(super) gen_ai: &'static str,
}

const SCRIPTED: &str = "scripted";

impl ProviderLabel {
    pub(super) fn from_request(request: &GenerateRequest) -> Self {
        let Some(config) = &request.llm_config else {
            return Self::new(OTHER, "");
        };
        let word = match (config.provider.as_str(), config.backend.as_str()) {
            (_, SCRIPTED) | (SCRIPTED, _) => SCRIPTED,
            ("", "" | "google-native") => GOOGLE.name,
            (word, _) => known::by_name(word).map_or(OTHER, |known| known.name),
        };
        Self::new(word, &config.project)
    }

    fn new(word: &'static str, project: &str) -> Self {
        let gen_ai = gen_ai_name(word, project);
        Self { word, gen_ai }
    }
}

/// The value of `error.type` for a code.
pub(super) fn error_class(code: &str) -> &'static str {
    let [.., other] = ErrorCode::CLASSES;
    ErrorCode::CLASSES
        .into_iter()
        .find(|class| *class == code)
        .unwrap_or(other)
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
            let label = ProviderLabel::from_request(&GenerateRequest {
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
        assert_eq!(
            ProviderLabel::from_request(&GenerateRequest::default()).word,
            "other"
        );
        assert_eq!(
            (error_class(""), error_class("rate_limited")),
            ("", "rate_limited")
        );
        assert_eq!(
            (error_class("stream_broken"), error_class("sk-secret")),
            ("_OTHER", "_OTHER")
        );
    }
}
