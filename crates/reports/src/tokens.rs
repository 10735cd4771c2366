//! Counts of tokens.

use diesel::prelude::Queryable;
use serde::Serialize;

/// Token counts, as far as the provider reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Queryable, Serialize)]
pub struct Tokens {
    /// Tokens of the requests, cached ones included.
    pub input: i64,
    /// Tokens that the provider read from its cache.
    pub cached: i64,
    /// Tokens of the answers.
    pub output: i64,
    /// Tokens spent on reasoning.
    pub thinking: i64,
}

/// The columns of the tokens: input, cached, output, thinking.
#[derive(Debug, Queryable)]
pub struct StoredTokens(Option<i64>, Option<i64>, Option<i64>, Option<i64>);

impl From<StoredTokens> for Option<Tokens> {
    fn from(StoredTokens(input, cached, output, thinking): StoredTokens) -> Self {
        Some(Tokens {
            input: input?,
            cached: cached.unwrap_or_default(),
            output: output.unwrap_or_default(),
            thinking: thinking.unwrap_or_default(),
        })
    }
}
