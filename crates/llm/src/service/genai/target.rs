//! The providers of this backend: the interface and the address of each.
//!
//! The name of a model never selects the provider. A base URL without a path gets the usual path of its provider.

use ::genai::adapter::AdapterKind;
use ::genai::resolver::{AuthData, Endpoint};
use ::genai::{Headers, ModelIden, ServiceTarget};
use reqwest::header::AUTHORIZATION;
use url::Url;

use crate::proto::LlmConfig;
use crate::service::provider::key::ApiKey;
use crate::service::provider::{self, ProviderError, known};
use crate::service::vertex::{self, QUOTA_HEADER, TokenProvider};
use tarsy_core::plan::option;
use tarsy_core::vocabulary::provider::{self as provider_table, OPENAI_COMPATIBLE, VERTEX_AI};
use tarsy_core::vocabulary::{Protocol, Provider};

/// Two more spellings of the servers with the interface of OpenAI.
const SPELLINGS: [&str; 2] = ["openai_compatible", "llama.cpp"];
/// The beginnings of the models that OpenAI offers by its Responses API.
const RESPONSES_MODELS: [&str; 9] = [
    "gpt-3", "gpt-4", "gpt-5", "gpt-6", "o1", "o3", "o4", "chatgpt-", "codex-",
];

/// The interface by which a provider is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Api {
    /// The Responses API of OpenAI.
    Responses,
    /// The chat completions of OpenAI, which most servers offer.
    Chat,
    /// The Messages API of Anthropic.
    Messages,
    /// The interface that only Ollama has.
    Ollama,
    /// The Converse API of Bedrock.
    Converse,
}

/// The provider and the model of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selection<'a> {
    pub(super) provider: &'static Provider,
    pub(super) api: Api,
    pub(super) model: &'a str,
}

impl<'a> Selection<'a> {
    /// # Errors
    /// `invalid_request` when the request names no model, or a provider or an interface that does not exist.
    pub(super) fn parse(config: &'a LlmConfig) -> Result<Self, ProviderError> {
        let provider = named(&config.provider)?;
        let model = config.model.as_str();
        let is_plain = !model.is_empty() && model.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_plain
            || model.contains(['?', '#', '%', '"', '\\'])
            || model.split('/').any(|part| part == "..")
        {
            return Err(ProviderError::invalid_request(format!(
                "'{model}' is no name of a model"
            )));
        }
        let api = match config.options.get(option::API).map(String::as_str) {
            None => usual_api(provider, model),
            Some("responses") if provider.protocol.has_responses() => Api::Responses,
            Some("chat") if provider.protocol.has_chat() => Api::Chat,
            Some("ollama") if provider.name == "ollama" => Api::Ollama,
            Some(word) => {
                return Err(ProviderError::invalid_request(format!(
                    "the provider '{}' has no interface '{word}'",
                    provider.name
                )));
            }
        };
        Ok(Self {
            provider,
            api,
            model,
        })
    }

    /// The name of the provider.
    pub(super) fn provider(self) -> &'static str {
        self.provider.name
    }

    fn adapter(self) -> AdapterKind {
        match self.api {
            Api::Responses => AdapterKind::OpenAIResp,
            Api::Ollama => AdapterKind::Ollama,
            Api::Messages => AdapterKind::Anthropic,
            Api::Converse => AdapterKind::BedrockApi,
            Api::Chat => self.chat_adapter(),
        }
    }

    /// The adapter with the name of the provider, or that of OpenAI.
    fn chat_adapter(self) -> AdapterKind {
        let own = match self.provider.protocol {
            Protocol::ChatOnly => AdapterKind::from_lower_str(self.provider.name),
            Protocol::OpenAi
            | Protocol::Messages
            | Protocol::Converse
            | Protocol::Chat
            | Protocol::Gemini
            | Protocol::Recording => None,
        };
        own.unwrap_or(AdapterKind::OpenAI)
    }

    /// The target of the request.
    ///
    /// # Errors
    /// When a key is missing or has characters that a header cannot carry, or the provider has no default address.
    pub(super) fn target(
        self,
        endpoint: &provider::Endpoint,
    ) -> Result<ServiceTarget, ProviderError> {
        let base = self.base(&endpoint.url)?;
        let auth = match &endpoint.key {
            Some(key) => {
                key.header()?;
                AuthData::from_single(key.expose())
            }
            None => self.without_key(&base)?,
        };
        Ok(ServiceTarget {
            endpoint: Endpoint::from_owned(base.as_str()),
            auth,
            model: ModelIden::new(self.adapter(), self.model),
        })
    }

    /// Whether a request is for the models of Anthropic by Vertex AI.
    pub(super) fn is_vertex_ai(self, config: &LlmConfig) -> bool {
        self.api == Api::Messages && vertex::is_wanted(config)
    }

    /// The address of the model at Vertex AI, where the name of the model is a part of the address. `base` is the
    /// address below which the models are.
    ///
    /// # Errors
    /// `invalid_request` when the name would change the address.
    pub(super) fn vertex_url(self, mut base: Url) -> Result<Url, ProviderError> {
        let is_plain = self
            .model
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._@".contains(&byte));
        if !is_plain {
            return Err(ProviderError::invalid_request(format!(
                "'{}' is no name of a model of Anthropic at Vertex AI, such as claude-sonnet-4-5@20250929",
                self.model
            )));
        }
        let path = format!("{}/models/{}:streamRawPredict", base.path(), self.model);
        base.set_path(&path);
        Ok(base)
    }

    /// The target of a request to Vertex AI, with a token of the account in place of a key.
    ///
    /// # Errors
    /// When the token has characters that a header cannot carry.
    pub(super) fn vertex_target(
        self,
        url: &Url,
        account: &TokenProvider,
        token: &ApiKey,
    ) -> Result<ServiceTarget, ProviderError> {
        token.header()?;
        let mut headers = vec![(
            AUTHORIZATION.as_str().to_owned(),
            format!("Bearer {}", token.expose()),
        )];
        if let Some(project) = account.quota_project() {
            headers.push((QUOTA_HEADER.to_owned(), project.to_owned()));
        }
        Ok(ServiceTarget {
            endpoint: Endpoint::from_owned(url.as_str()),
            auth: AuthData::RequestOverride {
                url: url.as_str().to_owned(),
                headers: Headers::from(headers),
            },
            model: ModelIden::new(self.adapter(), self.model),
        })
    }

    /// The address below which the paths of the interface are, with `/` at its end.
    fn base(self, url: &Url) -> Result<Url, ProviderError> {
        if url.host_str().is_some_and(|host| host.contains('*')) {
            return Err(ProviderError::invalid_request(format!(
                "the provider '{}' needs a base URL",
                self.provider()
            )));
        }
        let mut base = url.clone();
        let path = url.path().trim_end_matches('/');
        // The clients of Anthropic add the version to every address.
        let adds_version = self.api == Api::Messages && !path.ends_with("/v1");
        let usual = if (path.is_empty() || adds_version) && self.api != Api::Ollama {
            self.provider.path
        } else {
            ""
        };
        base.set_path(&format!("{path}{usual}/"));
        Ok(base)
    }

    /// A server without a key gets no header for one. Known providers refuse such a request, so it is not sent.
    fn without_key(self, base: &Url) -> Result<AuthData, ProviderError> {
        let is_open = self.provider.keys.is_empty() || self.provider() == "ollama";
        let path = match self.api {
            Api::Responses if is_open => "responses",
            Api::Chat if is_open => "chat/completions",
            Api::Ollama if is_open => "api/chat",
            Api::Responses | Api::Chat | Api::Ollama | Api::Messages | Api::Converse => {
                let message = format!(
                    "Environment variable '{}' is not set",
                    self.provider.keys.join("' or '")
                );
                return Err(ProviderError::credentials(message));
            }
        };
        let url = base
            .join(path)
            .map_err(|_error| ProviderError::invalid_request("The base URL is no address"))?;
        Ok(AuthData::RequestOverride {
            url: url.into(),
            headers: Headers::default(),
        })
    }
}

/// The provider of a request's word. Programs that serve models are one provider.
fn named(word: &str) -> Result<&'static Provider, ProviderError> {
    let is_alias = provider_table::named(word).is_some_and(|provider| provider.is_alias);
    let name = if is_alias || SPELLINGS.contains(&word) {
        OPENAI_COMPATIBLE.name
    } else {
        word
    };
    known::by_name(name)
        .filter(|provider| provider.protocol != Protocol::Gemini)
        .ok_or_else(|| {
            let names: Vec<_> = known::all()
                .filter(|provider| **provider != VERTEX_AI)
                .map(|provider| provider.name)
                .collect();
            ProviderError::invalid_request(format!(
                "'{name}' is no provider of this backend; it has {}",
                names.join(", ")
            ))
        })
}

/// The interface of a provider, unless a request asks for another one.
fn usual_api(provider: &Provider, model: &str) -> Api {
    match provider.protocol {
        Protocol::OpenAi => by_model(model),
        Protocol::Messages => Api::Messages,
        Protocol::Converse => Api::Converse,
        Protocol::Chat | Protocol::ChatOnly | Protocol::Gemini | Protocol::Recording => Api::Chat,
    }
}

/// Servers of other models at an address of their own seldom have more than the chat completions.
fn by_model(model: &str) -> Api {
    let name = model.rsplit('/').next().unwrap_or(model);
    if RESPONSES_MODELS
        .iter()
        .any(|prefix| name.starts_with(prefix))
    {
        Api::Responses
    } else {
        Api::Chat
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::service::provider::ErrorCode;

    fn config(provider: &str, model: &str, api: &str) -> LlmConfig {
        let mut options = HashMap::new();
        if !api.is_empty() {
            options.insert(option::API.to_owned(), api.to_owned());
        }
        LlmConfig {
            provider: provider.into(),
            model: model.into(),
            options,
            ..LlmConfig::default()
        }
    }

    #[test]
    fn the_provider_selects_the_interface_and_the_model_only_between_two_of_openai() {
        for (provider, model, api, expected) in [
            ("openai", "gpt-5.1", "", Api::Responses),
            ("openai", "o4-mini", "", Api::Responses),
            ("openai", "gpt-5.1", "chat", Api::Chat),
            ("openai", "gpt-oss-120b", "", Api::Chat),
            ("openai", "Qwen/Qwen3-32B", "", Api::Chat),
            ("openai", "claude-sonnet-4-5", "", Api::Chat),
            ("azure", "gpt-5-mini", "", Api::Responses),
            ("anthropic", "gpt-5.1", "", Api::Messages),
            ("xai", "grok-4", "", Api::Chat),
            ("vllm", "gemini-4-argon", "", Api::Chat),
            ("vllm", "openai/gpt-oss-20b", "responses", Api::Responses),
            ("ollama", "qwen3:8b", "", Api::Chat),
            ("ollama", "qwen3:8b", "ollama", Api::Ollama),
        ] {
            assert_eq!(
                Selection::parse(&config(provider, model, api)).unwrap().api,
                expected,
                "{provider} {model}"
            );
        }
        for (provider, model, api) in [
            ("vertex", "x", ""),
            ("", "x", ""),
            ("openai", "", ""),
            ("openai", "a b", ""),
            ("anthropic", "x", "chat"),
        ] {
            let error = Selection::parse(&config(provider, model, api)).unwrap_err();
            assert_eq!(
                error.code,
                ErrorCode::InvalidRequest,
                "{provider} {model} {api}"
            );
        }
    }

    #[test]
    fn a_base_url_without_a_path_gets_the_usual_one() {
        let base = |provider: &str, api: &str, url: &str| {
            let config = config(provider, "gpt-5.1", api);
            Selection::parse(&config)
                .unwrap()
                .base(&Url::parse(url).unwrap())
                .map(String::from)
        };
        for (provider, api, url, expected) in [
            (
                "openai",
                "",
                "https://api.openai.com",
                "https://api.openai.com/v1/",
            ),
            (
                "openai",
                "",
                "http://proxy:4000/v1",
                "http://proxy:4000/v1/",
            ),
            (
                "openai",
                "",
                "http://proxy:4000/openai/",
                "http://proxy:4000/openai/",
            ),
            (
                "azure",
                "",
                "https://team.openai.azure.com",
                "https://team.openai.azure.com/openai/v1/",
            ),
            (
                "anthropic",
                "",
                "https://api.anthropic.com",
                "https://api.anthropic.com/v1/",
            ),
            (
                "anthropic",
                "",
                "https://gateway/anthropic",
                "https://gateway/anthropic/v1/",
            ),
            (
                "anthropic",
                "",
                "https://gateway/anthropic/v1/",
                "https://gateway/anthropic/v1/",
            ),
            (
                "openrouter",
                "",
                "https://openrouter.ai",
                "https://openrouter.ai/api/v1/",
            ),
            (
                "ollama",
                "",
                "http://localhost:11434",
                "http://localhost:11434/v1/",
            ),
            (
                "ollama",
                "ollama",
                "http://localhost:11434",
                "http://localhost:11434/",
            ),
            ("vllm", "", "http://vllm:8000", "http://vllm:8000/v1/"),
        ] {
            assert_eq!(
                base(provider, api, url),
                Ok(expected.to_owned()),
                "{provider} {url}"
            );
        }
        assert!(
            base("azure", "", "https://*.openai.azure.com")
                .unwrap_err()
                .message
                .contains("needs a base URL")
        );
    }

    #[test]
    fn only_open_servers_are_asked_without_a_key() {
        let target = |provider: &str| {
            let config = config(provider, "m", "");
            let url = Url::parse("http://host:1").unwrap();
            Selection::parse(&config)
                .unwrap()
                .target(&provider::Endpoint { url, key: None })
        };
        let message = target("anthropic").unwrap_err().message;
        assert_eq!(
            message,
            "Environment variable 'ANTHROPIC_API_KEY' is not set"
        );
        for provider in ["vllm", "ollama"] {
            let auth = target(provider).unwrap().auth;
            assert!(
                matches!(auth, AuthData::RequestOverride { url, .. } if url == "http://host:1/v1/chat/completions")
            );
        }
    }
}
