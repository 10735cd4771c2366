//! The providers that a first configuration can use, each with a model to begin with.
//!
//! Windows are those of the input, from the providers' pages of models (2026-11).

/// A provider with a key, and a model to begin with.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Starter {
    /// The name in `llm_providers`.
    pub(super) name: &'static str,
    pub(super) provider: &'static str,
    /// The first one that is set is used.
    pub(super) keys: &'static [&'static str],
    pub(super) model: &'static str,
    pub(super) context_window: &'static str,
}

const fn starter(
    name: &'static str,
    provider: &'static str,
    keys: &'static [&'static str],
    model: &'static str,
    context_window: &'static str,
) -> Starter {
    Starter { name, provider, keys, model, context_window }
}

/// In the order in which they are preferred.
pub(super) const STARTERS: [Starter; 4] = [
    starter("gemini", "google", &["GEMINI_API_KEY", "GOOGLE_API_KEY"], "gemini-2.5-flash", "1M"),
    starter("claude", "anthropic", &["ANTHROPIC_API_KEY"], "claude-sonnet-4-5", "200k"),
    starter("openai", "openai", &["OPENAI_API_KEY"], "gpt-5-mini", "272k"),
    starter("grok", "xai", &["XAI_API_KEY"], "grok-4-fast", "256k"),
];

/// Keys of providers for which no model can be guessed: their models come and go, or need an address.
pub(super) const OTHER_KEYS: [(&str, &str); 9] = [
    ("AZURE_OPENAI_API_KEY", "azure"),
    ("AWS_BEARER_TOKEN_BEDROCK", "bedrock"),
    ("MISTRAL_API_KEY", "mistral"),
    ("GROQ_API_KEY", "groq"),
    ("DEEPSEEK_API_KEY", "deepseek"),
    ("OPENROUTER_API_KEY", "openrouter"),
    ("TOGETHER_API_KEY", "together"),
    ("FIREWORKS_API_KEY", "fireworks"),
    ("COHERE_API_KEY", "cohere"),
];
