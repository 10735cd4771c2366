//! The output of provider-native tools in a recorded answer: code, searches and pages.

use serde::Deserialize;

use tarsy_core::native::Source;

/// Code that the provider runs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Code {
    /// The text of the program.
    pub code: String,
    /// The provider's name of the language; may be empty.
    #[serde(default)]
    pub language: String,
    /// The provider's id of the execution; may be empty.
    #[serde(default)]
    pub id: String,
}

/// The result of code that the provider ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CodeResult {
    /// The output of the program.
    pub result: String,
    /// The provider's outcome, such as `OUTCOME_OK`; may be empty.
    pub outcome: String,
    /// The provider's id of the execution; may be empty.
    pub id: String,
}

/// The sources of the answer. They follow the text that cites them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Research {
    /// The search queries; empty if the provider read pages without a search.
    pub queries: Vec<String>,
    pub sources: Vec<Source>,
    /// The parts of the text with the pages that they cite.
    pub supports: Vec<Resting>,
    /// The provider's HTML for its search suggestions.
    pub search_widget: String,
}

/// A part of the text and the pages that it cites.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Resting {
    pub text: String,
    /// Indices into [`Research::sources`].
    pub sources: Vec<i32>,
    /// Begin and end in bytes. Without them the part is searched in the text so far, after the previous part if
    /// possible.
    pub bytes: Option<(i32, i32)>,
}
