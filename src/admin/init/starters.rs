//! The providers that a first configuration can use, each with a model to begin with.

use tarsy_config::default_models::{CLAUDE, DefaultModel, GEMINI, GPT, GROK};

/// A provider with a key, and a model to begin with.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Starter {
    /// The name in `llm_providers`.
    pub(super) name: &'static str,
    pub(super) default: DefaultModel,
}

/// The starters in the order of preference.
pub(super) const STARTERS: [Starter; 4] = [
    Starter {
        name: "gemini",
        default: GEMINI,
    },
    Starter {
        name: "claude",
        default: CLAUDE,
    },
    Starter {
        name: "openai",
        default: GPT,
    },
    Starter {
        name: "grok",
        default: GROK,
    },
];
