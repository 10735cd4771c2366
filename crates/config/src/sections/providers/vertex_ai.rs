//! Gemini by Vertex AI of Google Cloud instead of the Developer API: project, location and credentials.

use serde::Serialize;

use crate::read::reader::{Field, Map};
use crate::write::{is_default, written};

/// The Google Cloud project and location of the model; empty for the Developer API and for other providers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VertexAi {
    /// The id of the project that pays.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub project: String,
    /// `global`, or a region such as `europe-west4`.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub location: String,
    /// The environment variable of the LLM service that names the file with the credentials of an account.
    #[serde(skip_serializing_if = "is_default")]
    pub credentials_env: String,
}

impl VertexAi {
    /// `provider` is `None` if it is not known.
    pub(super) fn read(map: &mut Map<'_>, provider: Option<&str>) -> Self {
        let google = |field: &Field<'_>| {
            if let Some(other) = provider.filter(|provider| *provider != "google") {
                field.fault(format!("{other} does not support it; only google does"));
            }
        };
        let project = map.get("project").inspect(google);
        let location = map.get("location").inspect(google);
        let credentials_env = map.get("credentials_env").inspect(google);
        if location.is_some() && project.is_none() {
            map.missing("project", PROJECT);
        }
        Self {
            project: project
                .and_then(|field| name(&field, PROJECT))
                .unwrap_or_default(),
            location: location
                .and_then(|field| name(&field, LOCATION))
                .unwrap_or_default(),
            credentials_env: credentials_env
                .and_then(|field| field.variable_name())
                .unwrap_or_default(),
        }
    }
}

const PROJECT: &str = "the id of a project of Google Cloud, such as my-project-1";
const LOCATION: &str = "global, or a region such as europe-west4";
const MAX_NAME_BYTES: usize = 100;

/// A name that can be a part of an address. The id of an old project begins with a domain: `example.com:my-project`.
fn name(field: &Field<'_>, accepted: &str) -> Option<String> {
    let text = field.text()?;
    let is_plain = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | b':')
    };
    let begins = text.starts_with(|first: char| first.is_ascii_alphanumeric());
    if begins && text.len() <= MAX_NAME_BYTES && text.bytes().all(is_plain) {
        return Some(text);
    }
    field.expected(accepted);
    None
}
