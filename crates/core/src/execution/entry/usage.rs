//! The tokens of model calls.

use serde::{Deserialize, Serialize};

/// Tokens of one model call, as the provider counts them; 0 for a count that it does not report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input, cached tokens included.
    pub input_tokens: u64,
    /// The part of the input that the provider read from its cache.
    pub cached_tokens: u64,
    /// Output without the reasoning.
    pub output_tokens: u64,
    pub thinking_tokens: u64,
}

impl Usage {
    /// All billed tokens: input, output and reasoning.
    pub fn total(self) -> u64 {
        self.input_tokens
            .saturating_add(self.output_tokens)
            .saturating_add(self.thinking_tokens)
    }

    /// The sum, field by field.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens + other.input_tokens,
            cached_tokens: self.cached_tokens + other.cached_tokens,
            output_tokens: self.output_tokens + other.output_tokens,
            thinking_tokens: self.thinking_tokens + other.thinking_tokens,
        }
    }
}
