//! Corrects a request after the provider has refused a parameter, for models whose custom names hide their family.

use crate::proto::GenerateRequest;
use crate::service::provider::{ErrorCode, ProviderError};
use tarsy_core::plan::option::OUTPUT_LIMIT_FIELD;

/// The words of a provider that does not take a parameter.
const REFUSALS: [&str; 10] = [
    "unsupported",
    "not supported",
    "does not support",
    "unrecognized",
    "unknown",
    "unexpected",
    "not permitted",
    "not allowed",
    "deprecated",
    "instead",
];
/// The parameters that a request can do without.
const OPTIONAL: [&str; 2] = ["temperature", "reasoning_effort"];
/// The beginnings of the models of OpenAI that refuse `max_tokens`.
const NEW_MODELS: [&str; 5] = ["gpt-5", "gpt-6", "o1", "o3", "o4"];

/// The field of the output limit in chat completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(super) enum LimitField {
    MaxTokens,
    MaxCompletionTokens,
}

tarsy_core::words!(pub(super) LimitField);

impl LimitField {
    pub(super) fn of_model(model: &str) -> Self {
        let is_new = NEW_MODELS.iter().any(|prefix| model.starts_with(prefix));
        if is_new {
            Self::MaxCompletionTokens
        } else {
            Self::MaxTokens
        }
    }

    fn other(self) -> Self {
        match self {
            Self::MaxTokens => Self::MaxCompletionTokens,
            Self::MaxCompletionTokens => Self::MaxTokens,
        }
    }
}

/// The change to a request after a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Corrected {
    /// One parameter, once.
    Parameter,
    /// The refused tools are left out.
    Tools,
}

/// The differences of a request from the defaults of its model.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Correction {
    /// `None`: by the name of the model.
    pub(super) limit_field: Option<LimitField>,
    without: Option<&'static str>,
    is_made: bool,
}

impl Correction {
    /// Reads the correction that the options of the request ask for.
    ///
    /// # Errors
    /// `invalid_request` when an option names no field.
    pub(super) fn wanted(request: &GenerateRequest) -> Result<Self, ProviderError> {
        let limit_field = match request.option(OUTPUT_LIMIT_FIELD) {
            None => None,
            Some("max_tokens") => Some(LimitField::MaxTokens),
            Some("max_completion_tokens") => Some(LimitField::MaxCompletionTokens),
            Some(_) => {
                return Err(ProviderError::invalid_request(format!(
                    "the option '{OUTPUT_LIMIT_FIELD}' is not max_tokens or max_completion_tokens"
                )));
            }
        };
        Ok(Self {
            limit_field,
            ..Self::default()
        })
    }

    pub(super) fn is_without(&self, parameter: &str) -> bool {
        self.without == Some(parameter)
    }

    /// Learns from a refusal, once. Returns whether the next request is another one.
    pub(super) fn learn(&mut self, refused: &ProviderError, sent: LimitField) -> bool {
        let text = refused.message.to_lowercase();
        let is_refusal = refused.code == ErrorCode::InvalidRequest
            && REFUSALS.iter().any(|words| text.contains(words));
        if self.is_made || !is_refusal {
            return false;
        }
        if has_word(&text, sent.as_str()) {
            self.limit_field = Some(sent.other());
        } else if let Some(parameter) = OPTIONAL
            .into_iter()
            .find(|parameter| has_word(&text, parameter))
        {
            self.without = Some(parameter);
        } else {
            return false;
        }
        self.is_made = true;
        true
    }
}

/// Whether a text has this name as a word.
fn has_word(text: &str, name: &str) -> bool {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> ProviderError {
        ProviderError::new(ErrorCode::InvalidRequest, text)
    }

    #[test]
    fn a_refusal_that_names_a_parameter_is_learnt_from_once() {
        use LimitField::{MaxCompletionTokens, MaxTokens};
        let old = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
        let new = "Unrecognized request argument supplied: max_completion_tokens";
        for (text, sent, expected) in [
            (old, MaxTokens, MaxCompletionTokens),
            (new, MaxCompletionTokens, MaxTokens),
        ] {
            let mut correction = Correction::default();
            assert!(correction.learn(&refusal(text), sent), "{text}");
            assert_eq!(correction.limit_field, Some(expected));
            assert!(!correction.learn(&refusal(text), sent));
        }
        let mut correction = Correction::default();
        let text = "Unsupported value: 'temperature' does not support 0.1 with this model. Only the default (1) value is supported.";
        assert!(
            correction.learn(&refusal(text), MaxTokens) && correction.is_without("temperature")
        );
        for text in [
            "max_tokens must be positive",
            "Unknown parameter: 'tools'",
            "new_max_tokens is not supported",
        ] {
            assert!(
                !Correction::default().learn(&refusal(text), MaxTokens),
                "{text}"
            );
        }
        let other = ProviderError::new(ErrorCode::Credentials, old);
        assert!(!Correction::default().learn(&other, MaxTokens));
    }
}
