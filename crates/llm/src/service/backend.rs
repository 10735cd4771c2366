//! The backends of the service, selected by the name in a request.

use std::sync::Arc;

use super::call::Call;
use super::genai::Genai;
use super::google::Google;
use super::provider::{ErrorCode, ProviderError, ProviderStatus};
use super::scripted::Scripted;
use crate::proto::{LANGCHAIN, LlmConfig, ProviderCheck};

/// The backend of a request that names none. The existing service has the same default.
const DEFAULT_BACKEND: &str = "google-native";

/// Produces the answers of a model.
#[derive(Debug)]
pub enum Backend {
    /// Calls Gemini.
    Google(Google),
    /// Calls every other provider.
    Genai(Genai),
    /// Replays a transcript.
    Scripted(Scripted),
}

impl Backend {
    /// Its name in logs and metrics, which is one of [`Self::names`].
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Google(_) => "google-native",
            Self::Genai(_) => "genai",
            Self::Scripted(_) => "scripted",
        }
    }

    /// The words in `llm_config.backend` that select it.
    fn names(&self) -> &'static [&'static str] {
        match self {
            Self::Google(_) => &["google-native"],
            Self::Genai(_) => &["genai", LANGCHAIN],
            Self::Scripted(_) => &["scripted"],
        }
    }

    /// Answers one request. A failure is written as part of the answer.
    pub(super) async fn generate(&self, call: &Call<'_>) {
        match self {
            Self::Google(google) => google.generate(call).await,
            Self::Genai(genai) => genai.generate(call).await,
            Self::Scripted(scripted) => scripted.generate(call.request, call.writer).await,
        }
    }

    /// Whether a request with this configuration could be sent.
    async fn check(&self, config: &LlmConfig) -> ProviderStatus {
        match self {
            Self::Google(google) => google.check(config).await,
            Self::Genai(genai) => genai.check(config).await,
            Self::Scripted(scripted) => scripted.check(config),
        }
    }
}

/// The backends of a service, each name once.
#[derive(Clone, Debug)]
pub struct Backends(Arc<[Arc<Backend>]>);

impl Backends {
    pub fn new(backends: impl IntoIterator<Item = Backend>) -> Self {
        Self(backends.into_iter().map(Arc::new).collect())
    }

    /// Whether a request with this configuration could be sent.
    pub(super) async fn check(&self, config: &LlmConfig) -> ProviderCheck {
        match self.find(&config.backend) {
            Ok(backend) => backend.check(config).await.into_check(backend.name()),
            Err(unknown) => {
                let error = ProviderError::new(ErrorCode::InvalidBackend, unknown);
                ProviderStatus::without_call(Some(error)).into_check("")
            }
        }
    }

    /// Finds a backend by name. The error is the text of the existing service.
    pub(super) fn find(&self, name: &str) -> Result<Arc<Backend>, String> {
        let wanted = match name {
            "" => DEFAULT_BACKEND,
            name => name,
        };
        let mut backends = self.0.iter();
        let found = backends.find(|backend| backend.names().contains(&wanted));
        found.cloned().ok_or_else(|| {
            let names = self.0.iter().flat_map(|backend| backend.names());
            let mut names: Vec<&str> = names.copied().collect();
            names.sort_unstable();
            format!(
                "No provider registered for backend '{wanted}'. Available backends: {}",
                names.join(", ")
            )
        })
    }
}
