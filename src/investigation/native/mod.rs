//! What the tools of the provider itself did while the model answered: code that it ran, pages that it searched or read.
//!
//! These parts come with the answer and are stored with it, as they arrived. Owns their meaning; the names follow the
//! provider's protocol. What is told of them is worked out when it is told: `runs`, `references`, `citations`.

mod citations;
mod references;
mod runs;

pub use citations::{Citation, citations};
pub use references::{Reference, references};
pub use runs::{Run, runs};

use serde::{Deserialize, Serialize};

/// Code that the provider ran, or what came of it. The two often arrive apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CodePart {
    /// The program; empty in a part that is only a result.
    pub code: String,
    /// What it printed; empty in a part that is only code.
    pub result: String,
    /// The provider's word for how it went, as `OUTCOME_OK`; empty when it says nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub outcome: String,
    /// The language as the provider names it; empty when it says nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub language: String,
    /// The provider's id of the execution; empty when it says nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
}

/// What an answer rests on: a web search, or pages that were read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Grounding {
    /// What was searched for; empty when pages were read without a search.
    pub queries: Vec<String>,
    /// The pages.
    pub sources: Vec<Source>,
    /// Which text rests on which pages.
    pub supports: Vec<Support>,
    /// The provider's HTML for its search suggestions. Never part of the journal or of an event.
    #[serde(skip)]
    pub search_widget: String,
}

/// A page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Source {
    /// Where it is.
    pub uri: String,
    /// Its title; may be empty.
    pub title: String,
}

/// A piece of the answer and the pages that it rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Support {
    /// First byte of the piece, counted in a part of the answer, which need not begin where the text begins.
    pub start_index: u32,
    /// The byte behind it.
    pub end_index: u32,
    /// The piece itself.
    pub text: String,
    /// Indices into [`Grounding::sources`]; they may point at nothing.
    pub grounding_chunk_indices: Vec<u32>,
}

impl Source {
    /// Whether there is nothing to show.
    fn is_blank(&self) -> bool {
        self.uri.trim().is_empty() && self.title.trim().is_empty()
    }
}
