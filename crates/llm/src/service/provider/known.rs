//! The providers that this service knows: the variables of their keys, their addresses, and the variable by which
//! their official clients take another address.
//!
//! A request may use these without being permitted, each key only with the addresses of its own provider.

use url::Url;

/// A provider and what belongs to it.
#[derive(Debug, PartialEq, Eq)]
pub struct Known {
    /// The word in `llm_config.provider`.
    pub name: &'static str,
    /// The first one that is set is used for a request without `api_key_env`.
    pub keys: &'static [&'static str],
    /// Patterns of addresses. The first one is the default if it has no `*`.
    pub addresses: &'static [&'static str],
    /// The environment variable whose value replaces the default address; empty if the provider has no such variable.
    pub base_url_variable: &'static str,
}

const fn known(
    name: &'static str,
    keys: &'static [&'static str],
    addresses: &'static [&'static str],
    base_url_variable: &'static str,
) -> Known {
    Known {
        name,
        keys,
        addresses,
        base_url_variable,
    }
}

/// Gemini, by its Developer API.
pub(crate) const GOOGLE: Known = known(
    "google",
    &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    &["https://generativelanguage.googleapis.com"],
    "GOOGLE_GEMINI_BASE_URL",
);

/// The address of Vertex AI for the location `global`. Every other location stands before the host.
pub(crate) const VERTEX_AI_ADDRESS: &str = "https://aiplatform.googleapis.com";

/// Gemini, by Vertex AI of Google Cloud. Its accounts have no variable that a request may name without a permission.
pub const VERTEX_AI: Known = known(
    "vertex-ai",
    &[],
    &[VERTEX_AI_ADDRESS, "https://*-aiplatform.googleapis.com"],
    "GOOGLE_VERTEX_BASE_URL",
);

impl Known {
    /// The address that the value of `base_url_variable` names. One without a scheme, as `OLLAMA_HOST` may be, is one
    /// of HTTP, and without a port it has that of the default address.
    pub fn address_of(&self, value: &str) -> String {
        let value = value.trim();
        if value.contains("://") {
            return value.to_owned();
        }
        let (authority, path) = value
            .split_once('/')
            .map_or((value, ""), |(authority, path)| (authority, path));
        let is_number =
            |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let has_port = authority
            .rsplit_once(':')
            .is_some_and(|(_host, port)| is_number(port));
        let default = self
            .addresses
            .first()
            .and_then(|address| Url::parse(address).ok()?.port());
        let port = default
            .filter(|_port| !has_port)
            .map(|port| format!(":{port}"))
            .unwrap_or_default();
        let path = if path.is_empty() {
            String::new()
        } else {
            format!("/{path}")
        };
        format!("http://{authority}{port}{path}")
    }
}

/// Every known provider.
pub const ALL: [Known; 16] = [
    GOOGLE,
    VERTEX_AI,
    known(
        "openai",
        &["OPENAI_API_KEY"],
        &["https://api.openai.com"],
        "OPENAI_BASE_URL",
    ),
    known(
        "anthropic",
        &["ANTHROPIC_API_KEY"],
        &["https://api.anthropic.com"],
        "ANTHROPIC_BASE_URL",
    ),
    known(
        "xai",
        &["XAI_API_KEY"],
        &["https://api.x.ai"],
        "XAI_API_BASE",
    ),
    known(
        "mistral",
        &["MISTRAL_API_KEY"],
        &["https://api.mistral.ai"],
        "",
    ),
    known("groq", &["GROQ_API_KEY"], &["https://api.groq.com"], ""),
    known(
        "deepseek",
        &["DEEPSEEK_API_KEY"],
        &["https://api.deepseek.com"],
        "",
    ),
    known(
        "openrouter",
        &["OPENROUTER_API_KEY"],
        &["https://openrouter.ai"],
        "",
    ),
    known(
        "together",
        &["TOGETHER_API_KEY"],
        &["https://api.together.xyz"],
        "",
    ),
    known(
        "fireworks",
        &["FIREWORKS_API_KEY"],
        &["https://api.fireworks.ai"],
        "",
    ),
    known(
        "cohere",
        &["COHERE_API_KEY"],
        &["https://api.cohere.com"],
        "",
    ),
    known(
        "azure",
        &["AZURE_OPENAI_API_KEY"],
        &[
            "https://*.openai.azure.com",
            "https://*.services.ai.azure.com",
            "https://*.cognitiveservices.azure.com",
        ],
        "AZURE_OPENAI_ENDPOINT",
    ),
    known(
        "bedrock",
        &["BEDROCK_API_KEY", "AWS_BEARER_TOKEN_BEDROCK"],
        &["https://bedrock-runtime.*.amazonaws.com"],
        "",
    ),
    known(
        "ollama",
        &["OLLAMA_API_KEY"],
        &["http://localhost:11434", "http://127.0.0.1:11434"],
        "OLLAMA_HOST",
    ),
    // Any server with the interface of OpenAI: it has no key and no address of its own.
    known("openai-compatible", &[], &[], ""),
];

/// The known provider that a request names so. Vertex AI has no name there: a project makes `google` use it.
pub fn by_name(name: &str) -> Option<&'static Known> {
    ALL.iter()
        .find(|known| known.name == name && known.name != VERTEX_AI.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_may_name_a_host_without_scheme_and_port() {
        let ollama = by_name("ollama").unwrap();
        for (value, address) in [
            (" gpu.test ", "http://gpu.test:11434"),
            ("gpu.test:80", "http://gpu.test:80"),
            ("[::1]", "http://[::1]:11434"),
            ("[::1]:8", "http://[::1]:8"),
            ("gpu.test/ollama", "http://gpu.test:11434/ollama"),
            ("https://gpu.test", "https://gpu.test"),
        ] {
            assert_eq!(ollama.address_of(value), address, "{value}");
        }
        assert_eq!(
            by_name("openai").unwrap().address_of("proxy.test"),
            "http://proxy.test"
        );
    }
}
