//! The models to begin with: one for each provider that has a usual one, for `tarsy init` and for drills.
//!
//! Windows are those of the input, from the providers' pages of models (2026-11).

/// A model to begin with.
#[derive(Debug, PartialEq, Eq)]
pub struct DefaultModel {
    /// The word of `provider` in `llm_providers`.
    pub provider: &'static str,
    pub model: &'static str,
    /// The value of `context_window`.
    pub context_window: &'static str,
}

const fn model(
    provider: &'static str,
    model: &'static str,
    context_window: &'static str,
) -> DefaultModel {
    DefaultModel {
        provider,
        model,
        context_window,
    }
}

pub const GEMINI: DefaultModel = model("google", "gemini-2.5-flash", "1M");
pub const CLAUDE: DefaultModel = model("anthropic", "claude-sonnet-4-5", "200k");
pub const GPT: DefaultModel = model("openai", "gpt-5-mini", "272k");
pub const GROK: DefaultModel = model("xai", "grok-4-fast", "256k");
/// The default local model. An Ollama has to be started with its context window.
pub const LOCAL: DefaultModel = model("ollama", "qwen3:14b", "64k");
