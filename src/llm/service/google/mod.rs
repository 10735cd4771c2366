//! The backend `google-native`: Gemini by its Developer API, without a library of its vendor.
//!
//! A request is converted (`history.rs`, `tools.rs`, `thinking.rs`), sent (`attempt.rs`), and its events become the
//! parts of an answer (`events.rs`, `answer.rs`). `models.rs` is the only place that knows families of models. The
//! backend keeps nothing between two requests: what a model needs to go on travels as `provider_data` (`replay.rs`).

mod wire;
mod models;
mod thinking;
mod tools;
mod history;
mod request;
mod attempt;
mod events;
mod fault;
mod answer;
mod grounding;
mod finish;
mod replay;
#[cfg(test)]
mod tests;

use url::Url;

use self::attempt::GeminiAttempt;
use self::models::Model;
use self::request::Prepared;
use super::call::Call;
use super::provider::key::ApiKey;
use super::provider::timeouts::Timeouts;
use super::provider::{Access, ErrorCode, ProviderError, ProviderStatus, http, known, retry};
use crate::llm::proto::LlmConfig;

/// The versions of the API that a base URL may end with.
const VERSIONS: [&str; 3] = ["v1beta", "v1", "v1alpha"];

/// The backend `google-native`.
#[derive(Debug)]
pub struct Google {
    access: Access,
    timeouts: Timeouts,
}

impl Google {
    pub fn new(access: Access, timeouts: Timeouts) -> Self {
        Self { access, timeouts }
    }

    pub(super) async fn generate(&self, call: &Call<'_>) {
        let (url, key) = match self.endpoint(call.request.llm_config.as_ref()).await {
            Ok(endpoint) => endpoint,
            Err(error) => return call.writer.fail(error).await,
        };
        match self.attempt(call, url, &key) {
            Ok(mut attempt) => retry::run(call, &mut attempt).await,
            Err(error) => call.writer.fail(error).await,
        }
    }

    /// Whether a request with this configuration could be sent.
    pub(super) async fn check(&self, config: &LlmConfig) -> ProviderStatus {
        let status = self.access.status(&known::GOOGLE, config).await;
        let error = match self.endpoint(Some(config)).await {
            Ok(_endpoint) => Model::parse(&config.model).err(),
            Err(error) => Some(error),
        };
        status.with_error(error)
    }

    async fn endpoint(&self, config: Option<&LlmConfig>) -> Result<(Url, ApiKey), ProviderError> {
        let config = config.ok_or_else(|| ProviderError::new(ErrorCode::InvalidRequest, "llm_config is missing"))?;
        let endpoint = self.access.endpoint(&known::GOOGLE, config).await?;
        let key = endpoint.key.ok_or_else(|| {
            let names = known::GOOGLE.keys.join("' or '");
            ProviderError::new(ErrorCode::Credentials, format!("Environment variable '{names}' is not set"))
        })?;
        Ok((endpoint.url, key))
    }

    fn attempt<'a>(&self, call: &Call<'a>, base: Url, key: &'a ApiKey) -> Result<GeminiAttempt<'a>, ProviderError> {
        let prepared = Prepared::new(call.request)?;
        if !prepared.tools.left_out.is_empty() {
            let request_id = &call.request.request_id;
            tracing::warn!(request_id, tools = prepared.tools.left_out, "tools left out of a model call");
        }
        Ok(GeminiAttempt {
            client: http::client()?,
            url: stream_url(base, prepared.model.name),
            key,
            timeouts: self.timeouts,
            prepared,
            has_rebuilt: false,
        })
    }
}

/// The address of a model below a base URL with or without the version of the API.
fn stream_url(mut base: Url, model: &str) -> Url {
    let path = base.path().trim_end_matches('/').to_owned();
    let has_version = path.rsplit('/').next().is_some_and(|last| VERSIONS.contains(&last));
    let version = if has_version { "" } else { "/v1beta" };
    base.set_path(&format!("{path}{version}/models/{model}:streamGenerateContent"));
    base.set_query(Some("alt=sse"));
    base
}
