//! The backends, and which of them a request means.

use std::sync::Arc;

use super::reply::Reply;
use super::scripted::Scripted;
use crate::llm::proto::GenerateRequest;

/// What a request without a backend means: the existing service's default.
const DEFAULT: &str = "google-native";

/// A way to a model.
#[derive(Debug)]
pub enum Backend {
    /// Replays a transcript.
    Scripted(Scripted),
}

impl Backend {
    /// The name in `llm_config.backend`.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Scripted(_) => "scripted",
        }
    }

    /// Answers one request. A failure is part of the answer.
    pub(super) async fn generate(&self, request: &GenerateRequest, reply: &Reply) {
        match self {
            Self::Scripted(scripted) => scripted.generate(request, reply).await,
        }
    }
}

/// The backends of a service, one of a kind.
#[derive(Clone, Debug)]
pub struct Backends(Arc<[Arc<Backend>]>);

/// A request means a backend that this service does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("No provider registered for backend '{wanted}'. Available backends: {available}")]
pub(super) struct UnknownBackend {
    wanted: String,
    available: String,
}

impl Backends {
    /// A set of backends.
    pub fn new(backends: impl IntoIterator<Item = Backend>) -> Self {
        Self(backends.into_iter().map(Arc::new).collect())
    }

    /// The backend of a name; the text of the error is the existing service's.
    pub(super) fn find(&self, name: &str) -> Result<Arc<Backend>, UnknownBackend> {
        let wanted = if name.is_empty() { DEFAULT } else { name };
        let found = self.0.iter().find(|backend| backend.name() == wanted);
        found.cloned().ok_or_else(|| {
            let mut names: Vec<_> = self.0.iter().map(|backend| backend.name()).collect();
            names.sort_unstable();
            UnknownBackend { wanted: wanted.to_owned(), available: names.join(", ") }
        })
    }
}
