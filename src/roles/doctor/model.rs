//! Checks the LLM service and the keys of the providers.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Check, Checked, Verdict};
use crate::config::{Backend, Config, process_env};
use crate::engine::ports::Model as _;
use crate::llm::client::Client;

pub(super) async fn check(address: String, config: Option<Arc<Config>>) -> Checked {
    let failed = |detail: String| Check::new("llm-service", Verdict::Fail, detail);
    let client = Client::connect(&address).map_err(|error| failed(error.to_string()))?;
    if !client.serving().await {
        return Err(failed(format!("no answer from {address}")).fix("tarsy llm-service, or set TARSY_LLM_ADDR"));
    }
    let missing = config.as_deref().map(missing_keys).unwrap_or_default();
    Ok(vec![if missing.is_empty() {
        let only_replays = config.as_deref().is_some_and(only_replays);
        let replays = if only_replays { "; replays recordings, no model is asked" } else { "" };
        Check::new("llm-service", Verdict::Ok, format!("serving at {address}{replays}"))
    } else {
        // The service may run on another machine with other variables.
        let detail = format!("serving at {address}; not set here: {}", missing.join(", "));
        Check::new("llm-service", Verdict::Warn, detail).fix("the LLM service needs these variables")
    }])
}

/// The missing variables with keys, each with the providers that need it.
fn missing_keys(config: &Config) -> Vec<String> {
    let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, provider) in &config.llm_providers {
        let key = provider.api_key_env.as_str();
        if !key.is_empty() && process_env(key).is_none_or(|value| value.is_empty()) && is_used(config, name) {
            missing.entry(key).or_default().push(name);
        }
    }
    missing.into_iter().map(|(key, providers)| format!("{key} (provider {})", providers.join(", "))).collect()
}

/// Whether every provider in use replays a recording.
fn only_replays(config: &Config) -> bool {
    let mut used = config.llm_providers.iter().filter(|(name, _)| is_used(config, name)).peekable();
    used.peek().is_some() && used.all(|(_, provider)| provider.backend == Backend::Scripted)
}

/// Whether a layer of settings names the provider, also as one that takes over.
fn is_used(config: &Config, provider: &str) -> bool {
    let mut layers = vec![&config.defaults.settings];
    layers.extend(config.agents.values().map(|agent| &agent.settings));
    for chain in config.agent_chains.values() {
        layers.push(&chain.settings);
        for stage in &chain.stages {
            layers.push(&stage.settings);
            layers.extend(stage.agents.iter().map(|agent| &agent.settings));
        }
    }
    let named =
        layers.iter().flat_map(|layer| layer.llm_provider.iter().chain(layer.fallback_providers.iter().flatten()));
    named.into_iter().any(|named| named == provider)
}
