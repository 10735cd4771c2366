//! Asks an Ollama for its models: `GET /api/tags`, then `POST /api/show` for the capabilities of each.

use std::time::Duration;

use futures_util::future::join_all;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The default address of Ollama.
pub const LOCAL_OLLAMA: &str = "http://127.0.0.1:11434";

/// A server on this machine answers at once; without one the connection is refused.
const TIMEOUT: Duration = Duration::from_millis(300);
/// The time limit for the server of a variable, which may be another machine.
const NAMED_TIMEOUT: Duration = Duration::from_secs(3);
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;
/// The newest models are listed first.
const MAX_MODELS: usize = 20;

/// The source of the address of an Ollama.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressSource {
    /// The usual address on this machine.
    Default,
    /// The variable `OLLAMA_HOST`.
    Variable,
}

/// The Ollama that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ollama {
    Absent,
    /// It has no model that writes text.
    WithoutModel,
    /// An installed model; one with support for tools, if there is one.
    Model {
        name: String,
        tools: ToolSupport,
    },
}

/// Whether a model can be offered tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolSupport {
    Supported,
    Unsupported,
}

#[derive(Deserialize)]
struct Tags {
    #[serde(default)]
    models: Vec<Tag>,
}

#[derive(Deserialize)]
struct Tag {
    name: String,
}

#[derive(Default, Deserialize)]
struct Shown {
    #[serde(default)]
    capabilities: Vec<String>,
}

/// Asks the Ollama at this address.
pub(super) async fn ask(address: &str, source: AddressSource) -> Ollama {
    let address = address.trim_end_matches('/');
    let Some(client) = client(source) else {
        return Ollama::Absent;
    };
    let Some(tags) = read::<Tags>(client.get(format!("{address}/api/tags"))).await else {
        return Ollama::Absent;
    };
    let shown = tags.models.into_iter().take(MAX_MODELS).map(async |tag| {
        let body = serde_json::json!({"model": tag.name}).to_string();
        let request = client
            .post(format!("{address}/api/show"))
            .header("content-type", "application/json")
            .body(body);
        (tag.name, read::<Shown>(request).await)
    });
    let models = join_all(shown).await.into_iter();
    choose(models.map(|(name, shown)| (name, shown.unwrap_or_default())))
}

/// The first model with tools, otherwise the first one that writes text.
fn choose(models: impl Iterator<Item = (String, Shown)>) -> Ollama {
    let mut plain = None;
    for (name, Shown { capabilities }) in models {
        let can = |word: &str| capabilities.iter().any(|capability| capability == word);
        if can("tools") {
            return Ollama::Model {
                name,
                tools: ToolSupport::Supported,
            };
        }
        // An old server does not list capabilities.
        if plain.is_none() && (can("completion") || capabilities.is_empty()) {
            plain = Some(name);
        }
    }
    plain.map_or(Ollama::WithoutModel, |name| Ollama::Model {
        name,
        tools: ToolSupport::Unsupported,
    })
}

/// A client for this machine, without a proxy and without certificate authorities; or one for any machine.
fn client(source: AddressSource) -> Option<reqwest::Client> {
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
    let builder = reqwest::Client::builder();
    let builder = match source {
        AddressSource::Default => builder.no_proxy().tls_certs_only([]).timeout(TIMEOUT),
        AddressSource::Variable => builder.timeout(NAMED_TIMEOUT),
    };
    builder.build().ok()
}

async fn read<T: DeserializeOwned>(request: reqwest::RequestBuilder) -> Option<T> {
    let mut response = request.send().await.ok()?.error_for_status().ok()?;
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_ANSWER_BYTES {
            return None;
        }
    }
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_with_tools_is_preferred_and_an_embedding_model_is_no_choice() {
        let choice = |models: &[(&str, &[&str])]| {
            choose(models.iter().map(|(name, words)| {
                (
                    (*name).to_owned(),
                    Shown {
                        capabilities: words.iter().map(|word| (*word).to_owned()).collect(),
                    },
                )
            }))
        };
        let model = |name: &str, tools| Ollama::Model {
            name: name.to_owned(),
            tools,
        };
        let embedding: (&str, &[&str]) = ("nomic-embed-text:latest", &["embedding"]);
        let gemma: (&str, &[&str]) = ("gemma3:4b", &["completion", "vision"]);
        let qwen: (&str, &[&str]) = ("qwen3:14b", &["completion", "tools", "thinking"]);
        assert_eq!(
            choice(&[embedding, gemma, qwen]),
            model("qwen3:14b", ToolSupport::Supported)
        );
        assert_eq!(
            choice(&[embedding, gemma]),
            model("gemma3:4b", ToolSupport::Unsupported)
        );
        assert_eq!(choice(&[embedding]), Ollama::WithoutModel);
        assert_eq!(
            choice(&[("llama2:7b", &[])]),
            model("llama2:7b", ToolSupport::Unsupported)
        );
        assert_eq!(choice(&[]), Ollama::WithoutModel);
    }
}
