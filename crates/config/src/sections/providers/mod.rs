//! `llm_providers`: models, the services that run them, and their prices.

mod backend;
mod connection;
mod generation;
mod vertex_ai;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

pub use self::backend::Backend;
pub use self::connection::Connection;
pub use self::generation::Generation;
pub use self::vertex_ai::VertexAi;
use crate::declared::forms::{As, tokens as tokens_form};
use crate::declared::texts::{Text, Url, VariableName};
use crate::read::reader::Field;
use crate::write::{is_default, tokens};
use tarsy_core::vocabulary::provider;

/// A model and the service that runs it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct LlmProvider {
    /// The service: `google`, `openai`, …; a server that speaks the protocol of OpenAI is `openai-compatible`, or the
    /// name of its program.
    #[schemars(schema_with = "services", extend("x-required" = ""))]
    pub provider: String,
    /// The backend of the LLM service that sends the requests; by default the one that fits the provider and the
    /// strategy.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(schema_with = "backend::words")]
    pub backend: Option<Backend>,
    /// The provider's name for the model.
    #[serde(with = "As::<Text>")]
    pub model: String,
    /// The name of the recording for `scripted`; by default the recording that matches the alert.
    #[serde(with = "As::<Text>", skip_serializing_if = "is_default")]
    pub transcript: String,
    /// The environment variable of the LLM service with the key; by default none.
    #[serde(with = "As::<VariableName>", skip_serializing_if = "is_default")]
    pub api_key_env: String,
    /// Replaces the provider's endpoint. It is stored in plans, so it must not contain a secret.
    #[serde(with = "As::<Url>", skip_serializing_if = "is_default")]
    pub base_url: String,
    /// The context window of the model in tokens; by default it is unknown.
    #[serde(serialize_with = "tokens", skip_serializing_if = "is_default")]
    #[schemars(schema_with = "tokens_form::<4_000, 100_000_000>")]
    pub context_window: u64,
    /// Whether the record of each call keeps the provider's HTML for search suggestions.
    #[serde(skip_serializing_if = "is_default")]
    pub keep_search_widget: bool,
    /// Whether the form of the answer has an example, for a weak model.
    #[serde(skip_serializing_if = "is_default")]
    pub example: bool,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Price {
    /// Input tokens that are not cached.
    #[schemars(range(min = 0.0), extend("x-required" = DOLLARS))]
    pub input: f64,
    /// Input tokens that are read from the provider's cache; by default the price of the others.
    #[schemars(range(min = 0.0))]
    pub cached_input: f64,
    /// Output and reasoning tokens.
    #[schemars(range(min = 0.0), extend("x-required" = DOLLARS))]
    pub output: f64,
}

const DOLLARS: &str = "US dollars for a million tokens";
/// The model of a provider that replays recordings.
const RECORDING: &str = "recording";

fn services(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": provider::names()})
}

impl LlmProvider {
    /// A provider that replays the recording that matches the alert.
    pub fn scripted() -> Self {
        Self {
            provider: "scripted".to_owned(),
            model: RECORDING.to_owned(),
            ..Self::default()
        }
    }

    /// The backend of the LLM service, as far as no strategy says more.
    pub fn backend(&self) -> Backend {
        self.backend
            .unwrap_or_else(|| Backend::of_provider(&self.provider))
    }

    pub(crate) fn check(&mut self, field: &Field<'_>) {
        let named = Some(self.provider.as_str()).filter(|provider| !provider.is_empty());
        let row = named.and_then(provider::named);
        let selected = self.backend();
        let recorded = selected == Backend::Scripted;
        backend::check(self.backend, field, named);
        if !recorded && named.is_some() && !field.has("model") {
            field.missing("model", "the provider's name for the model");
        }
        if !recorded && let Some(field) = field.get("transcript") {
            field.fault("only a scripted provider replays a recording".to_owned());
        }
        let needed = row.map_or("", |row| row.needed_base_url);
        if !needed.is_empty() && !field.has("base_url") {
            field.missing("base_url", needed);
        }
        self.generation.check(field, named.map(|_| selected));
        self.connection.check(field, row);
        VertexAi::check(field, row);
        if !field.has("model") {
            self.model = RECORDING.to_owned();
        }
        if let Some(price) = &mut self.price
            && !field.at("price").has("cached_input")
        {
            price.cached_input = price.input;
        }
    }
}
