//! The backend `google-native`: Gemini by its Developer API or by Vertex AI.
//!
//! A request is converted (`history.rs`, `tools.rs`, `thinking.rs`), sent (`attempt.rs`), and its events become the
//! parts of an answer (`answer.rs`). `models.rs` is the only place that knows families of models. The
//! backend keeps nothing between two requests: what a model needs to continue travels as `provider_data` (`replay.rs`).

mod wire;
mod models;
mod thinking;
mod tools;
mod history;
mod request;
mod attempt;
mod fault;
mod answer;
mod other_sources;
mod grounding;
mod finish;
mod replay;
#[cfg(test)]
mod tests;

use url::Url;

use self::attempt::{GeminiAttempt, Identity};
use self::models::Model;
use self::request::Prepared;
use self::tools::Api;
use super::call::Call;
use super::provider::timeouts::Timeouts;
use super::provider::{Access, ProviderError, ProviderStatus, http, known, options, retry};
use super::vertex::{self, Publisher, Tokens};
use crate::proto::LlmConfig;
use tarsy_core::vocabulary::provider::GOOGLE;

/// The versions of the Developer API that a base URL may end with. The first one is added to any other address.
const VERSIONS: [&str; 3] = ["v1beta", "v1", "v1alpha"];

/// The backend `google-native`.
#[derive(Debug)]
pub struct Google {
    access: Access,
    timeouts: Timeouts,
    tokens: Tokens,
}

impl Google {
    pub fn new(access: Access, timeouts: Timeouts) -> Self {
        Self {
            access,
            timeouts,
            tokens: Tokens::default(),
        }
    }

    pub(super) async fn generate(&self, call: &Call<'_>) {
        retry::run(call, self.attempt(call).await).await;
    }

    /// Whether a request with this configuration could be sent. No token is asked for.
    pub(super) async fn check(&self, config: &LlmConfig) -> ProviderStatus {
        if vertex::is_wanted(config) {
            return self.check_vertex_ai(config).await;
        }
        let status = self.access.status(&GOOGLE, config).await;
        let error = match self.endpoint(config).await {
            Ok(_endpoint) => Model::parse(&config.model).err(),
            Err(error) => Some(error),
        };
        status.with_error(error)
    }

    async fn check_vertex_ai(&self, config: &LlmConfig) -> ProviderStatus {
        let publisher = Publisher::Google;
        let status = vertex::check(&self.access, &self.tokens, config, publisher).await;
        let error = match status.error {
            Some(error) => Some(error),
            None => Model::parse(&config.model).err(),
        };
        ProviderStatus { error, ..status }
    }

    async fn attempt<'a>(&self, call: &Call<'a>) -> Result<GeminiAttempt<'a>, ProviderError> {
        let (base, identity) = self.endpoint(call.config()?).await?;
        let api = match &identity {
            Identity::Key(_) => Api::Developer,
            Identity::Account(_) => Api::VertexAi,
        };
        let prepared = Prepared::new(call.request, api)?;
        call.log_left_out(&prepared.tools.left_out);
        Ok(GeminiAttempt {
            client: http::client()?,
            url: stream_url(base, prepared.model.name),
            identity,
            timeouts: options::timeouts(call.request, self.timeouts)?,
            prepared,
        })
    }

    /// The address below which the models are, and who asks them.
    async fn endpoint(&self, config: &LlmConfig) -> Result<(Url, Identity), ProviderError> {
        if vertex::is_wanted(config) {
            let publisher = Publisher::Google;
            let found = vertex::endpoint(&self.access, &self.tokens, config, publisher).await?;
            return Ok((found.url, Identity::Account(found.account)));
        }
        let endpoint = self.access.endpoint(&GOOGLE, config).await?;
        let key = endpoint.key.ok_or_else(|| {
            let names = GOOGLE.keys.join("' or '");
            ProviderError::credentials(format!("Environment variable '{names}' is not set"))
        })?;
        Ok((
            known::with_version(endpoint.url, &VERSIONS),
            Identity::Key(key),
        ))
    }
}

/// The address of a model.
fn stream_url(mut base: Url, model: &str) -> Url {
    let path = base.path().trim_end_matches('/').to_owned();
    base.set_path(&format!("{path}/models/{model}:streamGenerateContent"));
    base.set_query(Some("alt=sse"));
    base
}
