//! The backend `genai`: every provider but Gemini, by one crate.
//!
//! A request is converted (`history/`, `tools.rs`, `thinking.rs`) and sent by the crate (`attempt.rs`) through a relay
//! that mends the answer (`relay/`). Its events become the parts of an answer (`answer.rs`). `target.rs` has the
//! interface of each provider, and that of Claude at Vertex AI, `models.rs` the table of models. Fields that the crate
//! drops are read in parallel (`frames/`). After a refusal that names a parameter, one corrected request follows
//! (`correction.rs`), and after one that names tools, a request without them (`provider/refused_tools/`). The backend
//! keeps nothing between two requests: what a model needs to continue travels as `provider_data`
//! (`history/replay.rs`).

mod target;
mod models;
mod thinking;
mod tools;
mod history;
mod correction;
mod request;
mod relay;
mod attempt;
mod frames;
mod fault;
mod answer;
mod finish;
#[cfg(test)]
mod tests;

use self::attempt::{Destination, GenaiAttempt};
use self::request::Prepared;
use self::target::Selection;
use super::call::Call;
use super::google::Google;
use super::provider::timeouts::Timeouts;
use super::provider::{Access, ProviderError, ProviderStatus, options, retry};
use super::vertex::{self, Publisher, Tokens};
use crate::proto::LlmConfig;
use tarsy_core::vocabulary::provider::{GOOGLE, VERTEX_AI_ADDRESS};
use url::Url;

/// The backend `genai`.
#[derive(Debug)]
pub struct Genai {
    access: Access,
    timeouts: Timeouts,
    /// The tokens of accounts at Vertex AI.
    tokens: Tokens,
    /// Answers the requests for Gemini, because the crate loses parts of its answers.
    google: Google,
}

impl Genai {
    pub fn new(access: Access, timeouts: Timeouts) -> Self {
        Self {
            google: Google::new(access.clone(), timeouts),
            access,
            timeouts,
            tokens: Tokens::default(),
        }
    }

    pub(super) async fn generate(&self, call: &Call<'_>) {
        let config = call.request.llm_config.as_ref();
        if config.is_some_and(|config| config.provider == GOOGLE.name) {
            return self.google.generate(call).await;
        }
        retry::run(call, self.attempt(call).await).await;
    }

    /// Whether a request with this configuration could be sent.
    pub(super) async fn check(&self, config: &LlmConfig) -> ProviderStatus {
        if config.provider == GOOGLE.name {
            return self.google.check(config).await;
        }
        let selection = match Selection::parse(config) {
            Ok(selection) => selection,
            Err(error) => return ProviderStatus::without_call(Some(error)),
        };
        if selection.is_vertex_ai(config) {
            return self.check_vertex_ai(config, selection).await;
        }
        let status = self.access.status(selection.provider, config).await;
        let error = match self.access.endpoint(selection.provider, config).await {
            Ok(endpoint) => selection.target(&endpoint).err(),
            Err(error) => Some(error),
        };
        status.with_error(error)
    }

    async fn check_vertex_ai(
        &self,
        config: &LlmConfig,
        selection: Selection<'_>,
    ) -> ProviderStatus {
        let publisher = Publisher::Anthropic;
        let status = vertex::check(&self.access, &self.tokens, config, publisher).await;
        let error = match (status.error, Url::parse(VERTEX_AI_ADDRESS)) {
            (None, Ok(base)) => selection.vertex_url(base).err(),
            (error, _) => error,
        };
        ProviderStatus { error, ..status }
    }

    /// The address of a request, and who asks.
    async fn destination(
        &self,
        config: &LlmConfig,
        selection: Selection<'_>,
    ) -> Result<Destination, ProviderError> {
        if selection.is_vertex_ai(config) {
            let publisher = Publisher::Anthropic;
            let found = vertex::endpoint(&self.access, &self.tokens, config, publisher).await?;
            let url = selection.vertex_url(found.url)?;
            return Ok(Destination::VertexAi {
                url,
                account: found.account,
            });
        }
        let endpoint = self.access.endpoint(selection.provider, config).await?;
        let target = selection.target(&endpoint)?;
        Ok(Destination::Provider {
            target: Box::new(target),
            key: endpoint.key,
        })
    }

    async fn attempt<'a>(&self, call: &Call<'a>) -> Result<GenaiAttempt<'a>, ProviderError> {
        let config = call.config()?;
        let selection = Selection::parse(config)?;
        let destination = self.destination(config, selection).await?;
        let prepared = Prepared::new(call.request, selection)?;
        call.log_left_out(&prepared.tools.left_out);
        Ok(GenaiAttempt {
            destination,
            timeouts: options::timeouts(call.request, self.timeouts)?,
            prepared,
        })
    }
}
