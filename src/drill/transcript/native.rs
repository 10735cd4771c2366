//! What the tools of the provider itself do in a recorded answer.

use serde::Deserialize;

use crate::investigation::native::Source;

/// Code that the provider runs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Code {
    /// The program.
    pub code: String,
    /// As the provider names it; empty when it does not say.
    #[serde(default)]
    pub language: String,
    /// Of the execution; empty when the provider does not say one.
    #[serde(default)]
    pub id: String,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CodeResult {
    /// What it printed.
    pub result: String,
    /// The provider's word for how it went, as `OUTCOME_OK`; empty when it does not say.
    pub outcome: String,
    /// Of the execution; empty when the provider does not say one.
    pub id: String,
}

/// What the answer rests on. Comes behind the text that it speaks of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Research {
    /// What was searched for; empty when pages were read without a search.
    pub queries: Vec<String>,
    /// The pages.
    pub sources: Vec<Source>,
    /// Which text rests on which pages.
    pub supports: Vec<Resting>,
    /// The provider's HTML for its search suggestions.
    pub search_widget: String,
}

/// A piece of the text and the pages that it rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Resting {
    /// The piece.
    pub text: String,
    /// Indices into the pages.
    pub sources: Vec<i32>,
    /// Where the recording says that it begins and ends, in bytes; else where it stands in the text so far, each piece
    /// behind the one before it if it can.
    pub bytes: Option<(i32, i32)>,
}
