//! `llm_providers`: models, the services that run them, and their prices.

use std::ops::RangeInclusive;

use crate::config::read::reader::{Field, Map};

/// A model and the service that runs it.
#[derive(Clone, Debug, PartialEq)]
pub struct LlmProvider {
    /// The service: `google`, `openai`, …
    pub provider: String,
    /// The backend of the LLM service that sends the requests.
    pub backend: Backend,
    /// The provider's name for the model.
    pub model: String,
    /// The environment variable of the LLM service with the key; empty for none.
    pub api_key_env: String,
    /// Replaces the provider's endpoint; may be empty. It is stored in plans, so it must not contain a secret.
    pub base_url: String,
    /// The name of the recording for `scripted`; empty for the recording that matches the alert.
    pub transcript: String,
    /// The context window of the model in tokens; 0 if it is unknown.
    pub context_window: u64,
    /// Whether the record of each call keeps the provider's HTML for search suggestions.
    pub keep_search_widget: bool,
    /// The price of tokens; without it no cost is shown.
    pub price: Option<Price>,
}

/// Prices in US dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// Input tokens that are not cached.
    pub input: f64,
    /// Input tokens that are read from the provider's cache.
    pub cached_input: f64,
    /// Output and reasoning tokens.
    pub output: f64,
}

/// A backend of the LLM service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Replays a recording.
    Scripted,
    /// Uses Gemini's own protocol.
    GoogleNative,
    /// Supports all other providers. `langchain` is its older name.
    Genai,
}

impl Backend {
    /// The word in plans and requests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scripted => "scripted",
            Self::GoogleNative => "google-native",
            Self::Genai => "genai",
        }
    }

    fn parse(word: &str) -> Self {
        match word {
            "scripted" => Self::Scripted,
            "google-native" => Self::GoogleNative,
            _ => Self::Genai,
        }
    }

    fn of_provider(provider: &str) -> Self {
        match provider {
            "scripted" => Self::Scripted,
            "google" => Self::GoogleNative,
            _ => Self::Genai,
        }
    }
}

const PROVIDERS: [&str; 6] = ["google", "openai", "anthropic", "ollama", "xai", "scripted"];
/// The accepted context windows, in tokens.
const CONTEXT_WINDOWS: RangeInclusive<u64> = 4_000..=100_000_000;
const BACKENDS: [&str; 4] = ["google-native", "genai", "langchain", "scripted"];

impl LlmProvider {
    /// A provider that replays the recording that matches the alert.
    pub fn scripted() -> Self {
        Self {
            provider: "scripted".to_owned(),
            backend: Backend::Scripted,
            model: "recording".to_owned(),
            api_key_env: String::new(),
            base_url: String::new(),
            transcript: String::new(),
            context_window: 0,
            keep_search_widget: false,
            price: None,
        }
    }

    pub(crate) fn read(field: &Field<'_>) -> Self {
        let mut map = field.map();
        let provider = map.get("provider").and_then(|field| field.word(&PROVIDERS));
        if !map.has("provider") {
            map.missing("provider", &PROVIDERS.join(", "));
        }
        let backend = map.get("backend").and_then(|field| backend(&field, provider.as_deref()));
        let backend = backend.or_else(|| provider.as_deref().map(Backend::of_provider)).unwrap_or(Backend::Genai);
        let recorded = backend == Backend::Scripted;
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
        let read = Self {
            provider: provider.unwrap_or_default(),
            backend,
            model: model.unwrap_or_else(|| "recording".to_owned()),
            api_key_env: map.get("api_key_env").and_then(|field| field.variable_name()).unwrap_or_default(),
            base_url: map.get("base_url").and_then(|field| field.url()).unwrap_or_default(),
            transcript: transcript.unwrap_or_default(),
            context_window: map
                .get("context_window")
                .and_then(|field| field.tokens(CONTEXT_WINDOWS))
                .unwrap_or_default(),
            keep_search_widget: map.get("keep_search_widget").and_then(|field| field.flag()).unwrap_or_default(),
            price: map.get("price").map(|field| Price::read(field.map())),
        };
        map.finish();
        read
    }
}

/// The configured backend; reports a fault if it does not support the provider.
fn backend(field: &Field<'_>, provider: Option<&str>) -> Option<Backend> {
    let word = field.word(&BACKENDS)?;
    let backend = Backend::parse(&word);
    let fits = match backend {
        Backend::GoogleNative => provider == Some("google"),
        Backend::Scripted => provider == Some("scripted"),
        Backend::Genai => provider != Some("scripted"),
    };
    if let (false, Some(provider)) = (fits, provider) {
        field.fault(format!(
            "backend {word:?} does not support {provider}; accepted: {}",
            Backend::of_provider(provider).as_str()
        ));
    }
    Some(backend)
}

impl Price {
    fn read(mut map: Map<'_>) -> Self {
        let mut amount = |key: &'static str| {
            let amount = map.get(key).and_then(|field| field.amount());
            if amount.is_none() && !map.has(key) && key != "cached_input" {
                map.missing(key, "US dollars for a million tokens");
            }
            amount
        };
        let input = amount("input").unwrap_or_default();
        let price = Self {
            input,
            cached_input: amount("cached_input").unwrap_or(input),
            output: amount("output").unwrap_or_default(),
        };
        map.finish();
        price
    }
}
