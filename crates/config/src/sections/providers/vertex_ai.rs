//! Gemini and Claude by Vertex AI of Google Cloud instead of the interface of their maker: project, location and
//! credentials.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::declared::forms::As;
use crate::declared::texts::{Location, PROJECT, Project, VariableName};
use crate::read::reader::Field;
use crate::write::is_default;
use tarsy_core::vocabulary::Provider;
use tarsy_core::vocabulary::provider::PROVIDERS;

/// The Google Cloud project and location of the model; empty for the interface of its maker and for other providers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct VertexAi {
    /// The id of the project that pays.
    #[serde(with = "As::<Project>", skip_serializing_if = "is_default")]
    pub project: String,
    /// `global`, `eu`, `us`, or a region such as `europe-west4`.
    #[serde(with = "As::<Location>", skip_serializing_if = "is_default")]
    pub location: String,
    /// The environment variable of the LLM service that names the file with the credentials of an account.
    #[serde(with = "As::<VariableName>", skip_serializing_if = "is_default")]
    pub credentials_env: String,
}

impl VertexAi {
    /// `provider` is `None` if it is not known.
    pub(super) fn check(field: &Field<'_>, provider: Option<&Provider>) {
        if let Some(other) = provider.filter(|provider| !provider.protocol.has_vertex_ai()) {
            let able: Vec<&str> = PROVIDERS
                .iter()
                .filter(|provider| provider.protocol.has_vertex_ai())
                .map(|provider| provider.name)
                .collect();
            let able = able.join(" and ");
            let keys = ["project", "location", "credentials_env"];
            for field in keys.iter().filter_map(|key| field.get(key)) {
                field.fault(format!(
                    "{} does not support it; only {able} do",
                    other.name
                ));
            }
        }
        let is_partial = field.has("location") || field.has("credentials_env");
        if is_partial && !field.has("project") {
            field.missing("project", PROJECT);
        }
    }
}
