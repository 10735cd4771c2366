//! The backend of the LLM service that sends the requests for a provider.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::read::reader::Field;
use tarsy_core::vocabulary::{Protocol, provider};

/// A backend of the LLM service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Backend {
    /// Replays a recording.
    Scripted,
    /// Uses Gemini's own protocol.
    GoogleNative,
    /// Supports all other providers. `langchain` is its older name.
    #[serde(alias = "langchain")]
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

/// The words of backends.
pub(super) fn words(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["google-native", "genai", "langchain", "scripted"]})
}

/// Reports a backend that does not support the provider.
pub(super) fn check(backend: Option<Backend>, field: &Field<'_>, provider: Option<&str>) {
    let (Some(backend), Some(provider)) = (backend, provider) else {
        return;
    };
    let fits = match backend {
        Backend::GoogleNative => provider == "google",
        Backend::Scripted => provider == "scripted",
        Backend::Genai => provider != "scripted",
    };
    if !fits {
        let field = field.at("backend");
        let word = field.resolved().unwrap_or_default();
        field.fault(format!(
            "backend {word:?} does not support {provider}; accepted: {}",
            Backend::of_provider(provider).as_str()
        ));
    }
}
