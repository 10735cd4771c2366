//! `tarsy drill --provider`: selects a real model, and checks its key and its server.

use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::json;
use tokio::net::TcpStream;
use url::Url;

use crate::admin::drill::RealModel;
use crate::cli::args::{DrillArgs, GlobalArgs};
use crate::cli::commands::load_config;
use tarsy_config::default_models::{CLAUDE, DefaultModel, GEMINI, GPT, GROK, LOCAL};
use tarsy_config::{Backend, Config, LlmProvider, find, process_env};
use tarsy_core::vocabulary::{self, Provider};
use tarsy_llm::service::provider::known;

/// Words that need no configuration, each with its provider and default model.
const SHORTHANDS: [(&str, DefaultModel); 7] = [
    ("gemini", GEMINI),
    ("google", GEMINI),
    ("openai", GPT),
    ("anthropic", CLAUDE),
    ("claude", CLAUDE),
    ("xai", GROK),
    // Its server runs on the user's machine and needs no key.
    ("ollama", LOCAL),
];
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A reason why a real model cannot be asked, in one sentence.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct NotReady(String);

/// The model that the arguments name: a provider of the configuration, or a shorthand.
///
/// # Errors
/// When there is no such provider, or the configuration has faults.
pub(super) fn resolve(global: &GlobalArgs, args: &DrillArgs) -> anyhow::Result<Option<RealModel>> {
    let Some(named) = args.provider.as_deref() else {
        return Ok(None);
    };
    let mut model = match configured(global, named)? {
        Some(model) => model,
        None => shorthand(named, args.base_url.as_deref())?,
    };
    if let Some(url) = &args.base_url {
        url.clone_into(&mut model.provider.base_url);
    }
    if model.provider.backend() == Backend::Scripted {
        bail!(
            "the provider {named} replays recordings: leave --provider out to replay that of the drill"
        );
    }
    Ok(Some(model))
}

/// The provider of this name in the file, if there is a file.
fn configured(global: &GlobalArgs, name: &str) -> anyhow::Result<Option<RealModel>> {
    if find(global.config.clone()).is_none() {
        return Ok(None);
    }
    let provider = load_config(global)?.llm_providers.remove(name);
    Ok(provider.map(|provider| RealModel {
        name: name.to_owned(),
        provider,
    }))
}

/// A provider without a configuration: one of [`SHORTHANDS`], or a word of `llm_providers` with a model.
fn shorthand(named: &str, base_url: Option<&str>) -> anyhow::Result<RealModel> {
    let (word, model) = named
        .split_once(':')
        .map_or((named, None), |(word, model)| (word, Some(model)));
    let known = SHORTHANDS.iter().find(|(known, _)| *known == word);
    let (provider, default) = known.map_or((word, None), |(_, default)| {
        (default.provider, Some(default.model))
    });
    let Some(row) = vocabulary::provider::named(provider) else {
        let words = SHORTHANDS.map(|(word, _)| word).join(", ");
        bail!(
            "no provider \"{word}\": name one of llm_providers in tarsy.yaml, or {words}, each with :model if you like"
        );
    };
    let model = model
        .or(default)
        .with_context(|| format!("which model of {word}? write --provider {word}:MODEL"))?;
    if !row.needed_base_url.is_empty() && base_url.is_none() {
        bail!("where does {word} run? write --base-url URL, such as http://127.0.0.1:8000/v1/");
    }
    let literal = |text: &str| text.replace('$', "$$");
    let mut fields = json!({"provider": provider, "model": literal(model)});
    if let (Some(url), Some(fields)) = (base_url, fields.as_object_mut()) {
        fields.insert("base_url".to_owned(), literal(url).into());
    }
    let file = json!({"llm_providers": {word: fields}});
    let mut config = Config::parse("--provider", &file.to_string(), &process_env)?;
    let provider: Option<LlmProvider> = config.llm_providers.remove(word);
    Ok(RealModel {
        name: word.to_owned(),
        provider: provider.context("the provider cannot be read")?,
    })
}

/// Checks the key, and the server if it has to run on a machine of the user.
///
/// # Errors
/// [`NotReady`] with what to do.
pub(super) async fn check(model: &RealModel, args: &DrillArgs) -> Result<(), NotReady> {
    let RealModel { name, provider } = model;
    let known = known::by_name(&provider.provider);
    let is_local = provider.provider == LOCAL.provider;
    if key(model).is_none() && needs_key(provider) {
        let names = match (provider.api_key_env.as_str(), known) {
            ("", Some(known)) => known.keys.join(" or "),
            (name, _) => name.to_owned(),
        };
        return Err(NotReady(format!(
            "{name} needs a key: set {names}, or the same name with _FILE to the path of a file that holds it"
        )));
    }
    if is_local || args.base_url.is_some() {
        let address = address(provider, known);
        let accepts = match &address {
            Some(url) => accepts_connections(url).await,
            None => false,
        };
        if !accepts {
            let shown = address.map_or_else(
                || provider.base_url.clone(),
                |url| url.origin().ascii_serialization(),
            );
            return Err(NotReady(format!(
                "no server answers at {shown}: start it, or name its address with --base-url"
            )));
        }
    }
    Ok(())
}

async fn accepts_connections(url: &Url) -> bool {
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return false;
    };
    let connect = TcpStream::connect((host.trim_matches(['[', ']']), port));
    matches!(
        tokio::time::timeout(CONNECT_TIMEOUT, connect).await,
        Ok(Ok(_))
    )
}

/// A named key is needed in any case. Otherwise a server of the user's own, and Vertex AI, can do without one.
fn needs_key(provider: &LlmProvider) -> bool {
    let is_elsewhere = provider.provider == LOCAL.provider || !provider.base_url.is_empty();
    let is_vertex =
        !provider.vertex_ai.project.is_empty() || !provider.vertex_ai.credentials_env.is_empty();
    !provider.api_key_env.is_empty() || !is_elsewhere && !is_vertex
}

/// The variable from which the LLM service will read the key; `None` if none is set.
pub(super) fn key(model: &RealModel) -> Option<String> {
    let named = model.provider.api_key_env.as_str();
    let names = if named.is_empty() {
        known::by_name(&model.provider.provider).map_or(&[][..], |known| known.keys)
    } else {
        &[named]
    };
    let set = names.iter().find(|name| is_set(name))?;
    Some((*set).to_owned())
}

/// Whether the variable, or the variable of its file, has a value.
fn is_set(name: &str) -> bool {
    let names = [name.to_owned(), format!("{name}_FILE")];
    names
        .iter()
        .any(|name| process_env(name).is_some_and(|value| !value.trim().is_empty()))
}

fn address(provider: &LlmProvider, known: Option<&Provider>) -> Option<Url> {
    let variable = known
        .and_then(|known| process_env(known.base_url_variable))
        .filter(|text| !text.trim().is_empty());
    let text = Some(provider.base_url.clone())
        .filter(|url| !url.is_empty())
        .or(variable)
        .or_else(|| Some((*known?.addresses.first()?).to_owned()))?;
    Url::parse(&known.map_or_else(|| text.clone(), |known| known::address_of(known, &text))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorthand_names_a_provider_and_its_model() {
        for (named, name, provider, model, backend) in [
            (
                "gemini",
                "gemini",
                "google",
                "gemini-2.5-flash",
                Backend::GoogleNative,
            ),
            (
                "gemini:gemini-3-pro",
                "gemini",
                "google",
                "gemini-3-pro",
                Backend::GoogleNative,
            ),
            (
                "ollama:qwen3:8b",
                "ollama",
                "ollama",
                "qwen3:8b",
                Backend::Genai,
            ),
            ("openai", "openai", "openai", "gpt-5-mini", Backend::Genai),
        ] {
            let found = shorthand(named, None).unwrap();
            let seen = (
                found.name.as_str(),
                found.provider.provider.as_str(),
                found.provider.model.as_str(),
            );
            assert_eq!(
                (seen, found.provider.backend()),
                ((name, provider, model), backend),
                "{named}"
            );
        }
    }

    #[test]
    fn an_unknown_provider_is_refused_with_the_known_ones() {
        let refused = shorthand("gemni", None).unwrap_err().to_string();
        assert!(
            refused.contains("no provider \"gemni\"") && refused.contains("gemini, google, openai"),
            "{refused}"
        );
    }

    #[test]
    fn a_server_of_the_users_own_needs_no_key() {
        assert!(needs_key(&shorthand("openai", None).unwrap().provider));
        let mut model = shorthand("vllm:m", Some("http://127.0.0.1:8000/v1/")).unwrap();
        assert_eq!(model.provider.base_url, "http://127.0.0.1:8000/v1/");
        assert!(!needs_key(&model.provider));
        model.provider.api_key_env = "MY_KEY".to_owned();
        assert!(needs_key(&model.provider), "the configuration names a key");
        assert!(!needs_key(&shorthand("ollama", None).unwrap().provider));
    }
}
