//! The connection to a provider's model: the interface, the field of the output limit, and the time-outs of answers.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::Serialize;

use crate::read::reader::{Field, Map};
use crate::read::units::show_duration;
use crate::write::is_default;
use tarsy_core::vocabulary::{Protocol, Provider};

/// The accepted times. A local model may load for an hour before its first word.
const SECS: RangeInclusive<u64> = 1..=86_400;

/// The keys of a provider for its connection; absent ones have the defaults of the LLM service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Connection {
    /// The interface of the requests; `None`: by provider and model.
    #[serde(skip_serializing_if = "is_default")]
    pub api: Option<Interface>,
    /// The field of the output limit in chat completions; `None`: by the name of the model.
    #[serde(skip_serializing_if = "is_default")]
    pub output_limit_field: Option<OutputLimitField>,
    /// The time from the request to the first part of its answer.
    #[serde(serialize_with = "time", skip_serializing_if = "is_default")]
    pub first_chunk_timeout: Option<Duration>,
    /// The time between two parts of an answer.
    #[serde(serialize_with = "time", skip_serializing_if = "is_default")]
    pub stall_timeout: Option<Duration>,
    /// The time from the request to the end of its answer.
    #[serde(serialize_with = "time", skip_serializing_if = "is_default")]
    pub answer_timeout: Option<Duration>,
}

/// An interface that several providers offer.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::IntoStaticStr, strum::VariantArray,
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
    Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::IntoStaticStr, strum::VariantArray,
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
    pub(super) fn read(map: &mut Map<'_>, provider: Option<&Provider>) -> Self {
        let asked = |field: &Field<'_>| {
            if provider.is_some_and(|row| row.protocol == Protocol::Recording) {
                field.fault("a scripted provider asks no model".to_owned());
            }
        };
        let api = map.get("api").and_then(|field| interface(&field, provider));
        let output_limit_field = map.get("output_limit_field").and_then(|field| {
            if let Some(provider) = provider.filter(|row| !row.protocol.has_chat()) {
                field.fault(format!("{} has no chat completions", provider.name));
            }
            field.choice(&OutputLimitField::ALL, OutputLimitField::as_str)
        });
        let mut time = |name| {
            map.get(name).inspect(asked).and_then(|field| {
                Some(Time {
                    value: field.duration(SECS)?,
                    field,
                })
            })
        };
        let (first, stall, whole) = (
            time("first_chunk_timeout"),
            time("stall_timeout"),
            time("answer_timeout"),
        );
        for part in [&first, &stall] {
            check(part.as_ref(), whole.as_ref());
        }
        let value = |time: Option<Time<'_>>| time.map(|time| time.value);
        Self {
            api,
            output_limit_field,
            first_chunk_timeout: value(first),
            stall_timeout: value(stall),
            answer_timeout: value(whole),
        }
    }
}

/// A time that was read, and where.
struct Time<'c> {
    value: Duration,
    field: Field<'c>,
}

/// Reports a part of an answer that may take longer than the whole. A default that is longer ends with the whole.
fn check(part: Option<&Time<'_>>, whole: Option<&Time<'_>>) {
    let (Some(part), Some(whole)) = (part, whole) else {
        return;
    };
    if part.value > whole.value {
        let (time, limit) = (show_duration(part.value), show_duration(whole.value));
        part.field.fault(format!(
            "{time}; accepted: at most answer_timeout ({limit})"
        ));
    }
}

fn interface(field: &Field<'_>, provider: Option<&Provider>) -> Option<Interface> {
    let interface = field.choice(&Interface::ALL, Interface::as_str)?;
    if let Some(provider) = provider.filter(|provider| !interface.fits(provider)) {
        let fitting = Interface::ALL
            .into_iter()
            .filter(|interface| interface.fits(provider));
        let fitting: Vec<_> = fitting.map(Interface::as_str).collect();
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
    Some(interface)
}

fn time<S: serde::Serializer>(value: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    value.map(show_duration).serialize(serializer)
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
