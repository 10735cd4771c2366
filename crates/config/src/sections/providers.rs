//! `llm_providers`: models, the services that run them, and their prices.

mod backend;
mod connection;
mod generation;
mod vertex_ai;

use std::ops::RangeInclusive;

use serde::Serialize;

pub use self::backend::Backend;
pub use self::connection::Connection;
pub use self::generation::Generation;
pub use self::vertex_ai::VertexAi;
use crate::read::reader::Map;
use crate::write::{is_default, tokens, written};
use tarsy_core::vocabulary::provider;

/// A model and the service that runs it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LlmProvider {
    /// The service: `google`, `openai`, …; a server that speaks the protocol of OpenAI is `openai-compatible`, or the
    /// name of its program.
    pub provider: String,
    /// The backend of the LLM service that sends the requests; `None`: the one that fits the provider and the strategy.
    #[serde(skip_serializing_if = "is_default")]
    pub backend: Option<Backend>,
    /// The provider's name for the model.
    #[serde(serialize_with = "written")]
    pub model: String,
    /// The environment variable of the LLM service with the key; empty for none.
    #[serde(skip_serializing_if = "is_default")]
    pub api_key_env: String,
    /// Replaces the provider's endpoint; may be empty. It is stored in plans, so it must not contain a secret.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub base_url: String,
    /// The name of the recording for `scripted`; empty for the recording that matches the alert.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub transcript: String,
    /// The context window of the model in tokens; 0 if it is unknown.
    #[serde(serialize_with = "tokens", skip_serializing_if = "is_default")]
    pub context_window: u64,
    /// Whether the record of each call keeps the provider's HTML for search suggestions.
    #[serde(skip_serializing_if = "is_default")]
    pub keep_search_widget: bool,
    /// The generation settings of the model.
    #[serde(flatten)]
    pub generation: Generation,
    #[serde(flatten)]
    pub connection: Connection,
    #[serde(flatten)]
    pub vertex_ai: VertexAi,
    /// The price of tokens; without it a drill shows no cost.
    #[serde(skip_serializing_if = "is_default")]
    pub price: Option<Price>,
}

/// Prices in US dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Price {
    /// Input tokens that are not cached.
    pub input: f64,
    /// Input tokens that are read from the provider's cache.
    pub cached_input: f64,
    /// Output and reasoning tokens.
    pub output: f64,
}

/// The accepted context windows, in tokens.
const CONTEXT_WINDOWS: RangeInclusive<u64> = 4_000..=100_000_000;

impl LlmProvider {
    /// A provider that replays the recording that matches the alert.
    pub fn scripted() -> Self {
        Self {
            provider: "scripted".to_owned(),
            backend: None,
            model: "recording".to_owned(),
            api_key_env: String::new(),
            base_url: String::new(),
            transcript: String::new(),
            context_window: 0,
            keep_search_widget: false,
            generation: Generation::default(),
            connection: Connection::default(),
            vertex_ai: VertexAi::default(),
            price: None,
        }
    }

    /// The backend of the LLM service, as far as no strategy says more.
    pub fn backend(&self) -> Backend {
        self.backend
            .unwrap_or_else(|| Backend::of_provider(&self.provider))
    }

    pub(crate) fn read(map: &mut Map<'_>) -> Self {
        let provider = map
            .required("provider", &provider::names().join(", "))
            .and_then(|field| field.word(&provider::names()));
        let row = provider.as_deref().and_then(provider::named);
        let backend = map
            .get("backend")
            .and_then(|field| backend::read(&field, provider.as_deref()));
        let selected = backend
            .or_else(|| provider.as_deref().map(Backend::of_provider))
            .unwrap_or(Backend::Genai);
        let recorded = selected == Backend::Scripted;
        let model = map.text("model");
        if model.is_none() && !recorded && provider.is_some() && !map.has("model") {
            map.missing("model", "the provider's name for the model");
        }
        let transcript = map.get("transcript").and_then(|field| {
            if !recorded {
                field.fault("only a scripted provider replays a recording".to_owned());
            }
            field.text()
        });
        let api_key_env = map
            .get("api_key_env")
            .and_then(|field| field.variable_name());
        let base_url = map.get("base_url").and_then(|field| field.url());
        let needed = row.map_or("", |row| row.needed_base_url);
        if !needed.is_empty() && !map.has("base_url") {
            map.missing("base_url", needed);
        }
        let context_window = map.tokens("context_window", CONTEXT_WINDOWS);
        let keep_search_widget = map.flag("keep_search_widget");
        let generation = Generation::read(map, provider.is_some().then_some(selected));
        let connection = Connection::read(map, row);
        let vertex_ai = VertexAi::read(map, provider.as_deref());
        Self {
            provider: provider.unwrap_or_default(),
            backend,
            model: model.unwrap_or_else(|| "recording".to_owned()),
            api_key_env: api_key_env.unwrap_or_default(),
            base_url: base_url.unwrap_or_default(),
            transcript: transcript.unwrap_or_default(),
            context_window: context_window.unwrap_or_default(),
            keep_search_widget: keep_search_widget.unwrap_or_default(),
            generation,
            connection,
            vertex_ai,
            price: map.get("price").map(|field| field.section(Price::read)),
        }
    }
}

impl Price {
    fn read(map: &mut Map<'_>) -> Self {
        let dollars = "US dollars for a million tokens";
        let input = map
            .required("input", dollars)
            .and_then(|field| field.amount())
            .unwrap_or_default();
        let cached_input = map
            .get("cached_input")
            .and_then(|field| field.amount())
            .unwrap_or(input);
        let output = map
            .required("output", dollars)
            .and_then(|field| field.amount())
            .unwrap_or_default();
        Self {
            input,
            cached_input,
            output,
        }
    }
}
