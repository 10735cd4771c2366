//! The work of a provider's native tools for an answer, in the same form for every provider.

use serde::{Deserialize, Serialize};

use tarsy_core::native::CodePart;

/// The work of an answer, and the names of its calls as the provider knows them, in order.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub(super) work: Work,
    /// `None` for a format that has no calls.
    pub(super) calls: Option<Vec<String>>,
}

/// The work of one answer.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) sources: Sources,
    /// Programs and their outputs, in their order.
    pub(super) code: Vec<CodePart>,
    /// Thoughts to which no signature is bound.
    pub(super) thoughts: Vec<String>,
}

/// The searches of an answer, and the pages that it used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sources {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queries: Vec<String>,
    /// Pages that a search found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<FoundPage>,
    /// Pages that the provider read, or tried to read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<ReadPage>,
}

/// A page that a search found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FoundPage {
    /// The title of the page; may be empty.
    pub title: String,
    /// The address in the provider's spelling, which often redirects to the page.
    pub url: String,
}

/// A page that the provider read, or tried to read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadPage {
    pub url: String,
    /// The provider's word, for example `URL_RETRIEVAL_STATUS_SUCCESS`; may be empty.
    pub status: String,
}

impl Sources {
    pub fn is_empty(&self) -> bool {
        self.queries.is_empty() && self.found.is_empty() && self.read.is_empty()
    }

    pub(super) fn add_query(&mut self, query: &str) {
        if !query.trim().is_empty() && !self.queries.iter().any(|known| known == query) {
            self.queries.push(query.to_owned());
        }
    }

    pub(super) fn add_found(&mut self, title: &str, url: &str) {
        if !url.is_empty() && !self.found.iter().any(|page| page.url == url) {
            self.found.push(FoundPage {
                title: title.to_owned(),
                url: url.to_owned(),
            });
        }
    }

    pub(super) fn add_read(&mut self, url: &str, status: &str) {
        if !url.is_empty() && !self.read.iter().any(|page| page.url == url) {
            self.read.push(ReadPage {
                url: url.to_owned(),
                status: status.to_owned(),
            });
        }
    }
}
