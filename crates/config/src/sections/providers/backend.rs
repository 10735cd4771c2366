//! The backend of the LLM service that sends the requests for a provider.

use serde::Serialize;

use crate::read::reader::Field;
use tarsy_core::vocabulary::{Protocol, provider};

/// A backend of the LLM service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Backend {
    /// Replays a recording.
    Scripted,
    /// Uses Gemini's own protocol.
    GoogleNative,
    /// Supports all other providers. `langchain` is its older name.
    Genai,
}

tarsy_core::words!(pub Backend);

impl Backend {
    /// The backend for a provider, unless the configuration names one.
    pub(super) fn of_provider(provider: &str) -> Self {
        match provider::named(provider).map(|row| row.protocol) {
            Some(Protocol::Recording) => Self::Scripted,
            Some(Protocol::Gemini) => Self::GoogleNative,
            Some(_) | None => Self::Genai,
        }
    }
}

const BACKENDS: [(&str, Backend); 4] = [
    ("google-native", Backend::GoogleNative),
    ("genai", Backend::Genai),
    ("langchain", Backend::Genai),
    ("scripted", Backend::Scripted),
];

/// The configured backend; reports a fault if it does not support the provider.
pub(super) fn read(field: &Field<'_>, provider: Option<&str>) -> Option<Backend> {
    let (word, backend) = field.choice(&BACKENDS, |known| known.0)?;
    let fits = match backend {
        Backend::GoogleNative => provider == Some("google"),
        Backend::Scripted => provider == Some("scripted"),
        Backend::Genai => provider != Some("scripted"),
    };
    if let (false, Some(provider)) = (fits, provider) {
        field.fault(format!(
            "backend {word:?} does not support {provider}; accepted: {}",
            Backend::of_provider(provider).as_str()
        ));
    }
    Some(backend)
}
