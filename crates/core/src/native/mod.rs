//! Native tools: code that the provider ran and pages that it searched or read while the model answered.
//!
//! These parts arrive with the answer and are stored with it, unchanged; the names follow the provider's protocol. The
//! modules interpret them when the timeline is projected.

mod confidence;
mod citations;
mod references;
mod runs;

pub use citations::{Citation, citations};
pub use confidence::Confidence;
pub use references::{Reference, references};
pub use runs::{Run, runs};

use serde::{Deserialize, Serialize};

/// Code that the provider ran, or its result. The two often arrive in separate parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CodePart {
    /// The program; empty in a part that is only a result.
    pub code: String,
    /// The output of the program; empty in a part that is only code.
    pub result: String,
    /// The provider's word, for example `OUTCOME_OK`; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub outcome: String,
    /// The provider's name of the language; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub language: String,
    /// The provider's id of the execution; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
}

/// The grounding of an answer: a web search, or pages that were read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Grounding {
    /// The searches; empty when pages were read without a search.
    pub queries: Vec<String>,
    /// The pages.
    pub sources: Vec<Source>,
    /// The text that each page supports.
    pub supports: Vec<Support>,
    /// The pages that the provider tried to read, if it reports them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub retrievals: Vec<Retrieval>,
    /// The sources that are no pages of the web.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_sources: Vec<OtherSource>,
    /// The provider's HTML for its search suggestions. Never part of the journal or of an event.
    #[serde(skip)]
    pub search_widget: String,
}

/// A page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Source {
    pub uri: String,
    /// The title of the page, which may be empty.
    pub title: String,
}

/// An attempt to read a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Retrieval {
    pub url: String,
    /// The provider's word, for example `URL_RETRIEVAL_STATUS_PAYWALL`.
    pub status: String,
}

impl Retrieval {
    /// The reason why the page was not read, as a short word: `paywall`, `error`; `None` if it was read.
    pub fn failure(&self) -> Option<String> {
        let word = self
            .status
            .strip_prefix("URL_RETRIEVAL_STATUS_")
            .unwrap_or(&self.status);
        (word != "SUCCESS").then(|| word.to_lowercase().replace('_', " "))
    }
}

/// A piece of the answer and the pages that support it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Support {
    /// First byte of the piece in a part of the answer, which may begin elsewhere than the text.
    pub start_index: u32,
    /// The byte after its last one.
    pub end_index: u32,
    pub text: String,
    /// Indices into [`Grounding::sources`]; they may be out of range.
    pub grounding_chunk_indices: Vec<u32>,
    /// The provider's confidence in each index; often absent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub confidence_scores: Vec<Confidence>,
    /// The part of the answer whose bytes are counted; providers often leave it out.
    #[serde(skip_serializing_if = "is_first")]
    pub part_index: u32,
}

/// serde passes a reference.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature is that of `skip_serializing_if`"
)]
fn is_first(part: &u32) -> bool {
    *part == 0
}

/// A source that is no page of the web: a passage of a document, a place on a map.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct OtherSource {
    /// The provider's word, for example `retrievedContext`.
    pub kind: String,
    /// The address of the page, which may be empty.
    pub uri: String,
    /// The title of the page, which may be empty.
    pub title: String,
    /// The passage; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The words of the answer that rest on it, without indices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub supports: Vec<Support>,
}

impl Source {
    /// Whether there is nothing to show.
    fn is_blank(&self) -> bool {
        self.uri.trim().is_empty() && self.title.trim().is_empty()
    }
}
