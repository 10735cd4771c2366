//! The connection to a provider's model: the interface, the field of the output limit, and the time-outs of answers.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::declared::forms::{As, Secs};
use crate::read::reader::Field;
use crate::read::units::show_duration;
use crate::write::is_default;
use tarsy_core::vocabulary::{Protocol, Provider};

/// The accepted times. A local model may load for an hour before its first word.
type Time = Secs<1, 86_400>;

/// The keys of a provider for its connection; absent ones have the defaults of the LLM service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Connection {
    /// The interface of the requests; by default the one that fits provider and model.
    #[serde(skip_serializing_if = "is_default")]
    pub api: Option<Interface>,
    /// The field of the output limit in chat completions; by default the one that fits the name of the model.
    #[serde(skip_serializing_if = "is_default")]
    pub output_limit_field: Option<OutputLimitField>,
    /// The time from the request to the first part of its answer.
    #[serde(with = "As::<Time>", skip_serializing_if = "is_default")]
    pub first_chunk_timeout: Option<Duration>,
    /// The time between two parts of an answer.
    #[serde(with = "As::<Time>", skip_serializing_if = "is_default")]
    pub stall_timeout: Option<Duration>,
    /// The time from the request to the end of its answer.
    #[serde(with = "As::<Time>", skip_serializing_if = "is_default")]
    pub answer_timeout: Option<Duration>,
}

/// An interface that several providers offer.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Deserialize,
    Serialize,
    JsonSchema,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "snake_case")]
pub enum Interface {
    /// Chat completions.
    Chat,
    /// The Responses API of OpenAI.
    Responses,
    /// The interface that only Ollama has.
    Ollama,
}

tarsy_core::words!(pub Interface, ALL);

impl Interface {
    fn fits(self, provider: &Provider) -> bool {
        match self {
            Self::Chat => provider.protocol.has_chat(),
            Self::Responses => provider.protocol.has_responses(),
            Self::Ollama => provider.name == "ollama",
        }
    }
}

/// A field of chat completions.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Deserialize,
    Serialize,
    JsonSchema,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum OutputLimitField {
    MaxTokens,
    MaxCompletionTokens,
}

tarsy_core::words!(pub OutputLimitField, ALL);

impl Connection {
    /// The longest time that the first part of an answer may take, unless a key says otherwise.
    pub const FIRST_CHUNK_TIMEOUT: Duration = Duration::from_secs(120);
    /// The longest time that a provider may be silent within an answer, unless a key says otherwise.
    pub const STALL_TIMEOUT: Duration = Duration::from_secs(60);

    /// `provider` is `None` if it is not known.
    pub(super) fn check(&self, field: &Field<'_>, provider: Option<&Provider>) {
        if let (Some(api), Some(provider)) = (self.api, provider) {
            check_interface(api, &field.at("api"), provider);
        }
        if let Some(provider) = provider.filter(|row| !row.protocol.has_chat())
            && let Some(field) = field.get("output_limit_field")
        {
            field.fault(format!("{} has no chat completions", provider.name));
        }
        let is_recording = provider.is_some_and(|row| row.protocol == Protocol::Recording);
        for key in ["first_chunk_timeout", "stall_timeout", "answer_timeout"] {
            if is_recording && let Some(field) = field.get(key) {
                field.fault("a scripted provider asks no model".to_owned());
            }
        }
        let parts = [
            ("first_chunk_timeout", self.first_chunk_timeout),
            ("stall_timeout", self.stall_timeout),
        ];
        // A default that is longer ends with the whole.
        for (key, part) in parts {
            if let (Some(part), Some(whole)) = (part, self.answer_timeout)
                && part > whole
            {
                let time = show_duration(part);
                let limit = show_duration(whole);
                let fault = format!("{time}; accepted: at most answer_timeout ({limit})");
                field.at(key).fault(fault);
            }
        }
    }
}

/// Reports an interface that the provider does not have.
fn check_interface(interface: Interface, field: &Field<'_>, provider: &Provider) {
    if interface.fits(provider) {
        return;
    }
    let mut fitting = Interface::ALL.to_vec();
    fitting.retain(|interface| interface.fits(provider));
    let fitting: Vec<_> = fitting.into_iter().map(Interface::as_str).collect();
    let accepted = if fitting.is_empty() {
        "none".to_owned()
    } else {
        fitting.join(", ")
    };
    field.fault(format!(
        "{} has no interface {:?}; accepted: {accepted}",
        provider.name,
        interface.as_str()
    ));
}

#[cfg(test)]
mod tests {
    use crate::Config;

    fn faults(keys: &str) -> String {
        let text = format!("llm_providers: {{a: {{model: m, {keys}}}}}");
        Config::parse("f", &text, &|_| None)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    }

    #[test]
    fn keys_that_do_not_fit_are_reported_and_the_others_are_read() {
        for (keys, fault) in [
            (
                "provider: anthropic, api: chat",
                "anthropic has no interface \"chat\"; accepted: none",
            ),
            (
                "provider: groq, api: responses",
                "groq has no interface \"responses\"; accepted: chat",
            ),
            (
                "provider: openai, api: ollama",
                "openai has no interface \"ollama\"; accepted: chat, responses",
            ),
            (
                "provider: google, output_limit_field: max_tokens",
                "google has no chat completions",
            ),
            (
                "provider: openai, stall_timeout: 0s",
                "a duration such as 30s, 2m, 1h",
            ),
            (
                "provider: openai, first_chunk_timeout: 3m, answer_timeout: 2m",
                "3m; accepted: at most answer_timeout (2m)",
            ),
            (
                "provider: openai, stall_timeout: 3m, answer_timeout: 2m",
                "3m; accepted: at most answer_timeout (2m)",
            ),
        ] {
            let found = faults(keys);
            assert!(found.contains(fault), "{keys}: {found}");
        }
        for keys in [
            "provider: azure, api: chat, output_limit_field: max_completion_tokens",
            "provider: openai-compatible, base_url: 'http://h', api: responses",
            "provider: ollama, api: ollama",
            "provider: openai, first_chunk_timeout: 10m, stall_timeout: 5m, answer_timeout: 1h",
            "provider: google, first_chunk_timeout: 10m",
            "provider: openai, answer_timeout: 10s",
        ] {
            assert_eq!(faults(keys), "", "{keys}");
        }
    }
}
