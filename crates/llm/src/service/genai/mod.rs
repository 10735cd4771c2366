//! The backend `genai`: every provider but Gemini, by one crate.
//!
//! A request is converted (`history/`, `tools.rs`, `thinking.rs`) and sent by the crate (`attempt.rs`) through a relay
//! that mends the answer (`relay/`). Its events become the parts of an answer (`answer.rs`). `target.rs` has the
//! interface of each provider, `models.rs` the table of models. Fields that the crate drops are read in parallel
//! (`frames/`). After a refusal that names a parameter, one corrected request follows (`correction.rs`), and after one
//! that names tools, a request without them (`provider/refused_tools/`). The backend keeps nothing between two
//! requests: what a model needs to continue travels as `provider_data` (`history/replay.rs`).

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

use self::attempt::GenaiAttempt;
use self::request::Prepared;
use self::target::Selection;
use super::call::Call;
use super::google::Google;
use super::provider::timeouts::Timeouts;
use super::provider::{Access, ProviderError, ProviderStatus, options, retry};
use crate::proto::LlmConfig;
use tarsy_core::vocabulary::provider::GOOGLE;

/// The backend `genai`.
#[derive(Debug)]
pub struct Genai {
    access: Access,
    timeouts: Timeouts,
    /// Answers the requests for Gemini, because the crate loses parts of its answers.
    google: Google,
}

impl Genai {
    pub fn new(access: Access, timeouts: Timeouts) -> Self {
        Self {
            google: Google::new(access.clone(), timeouts),
            access,
            timeouts,
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
        let status = self.access.status(selection.provider, config).await;
        let error = match self.access.endpoint(selection.provider, config).await {
            Ok(endpoint) => selection.target(&endpoint).err(),
            Err(error) => Some(error),
        };
        status.with_error(error)
    }

    async fn attempt<'a>(&self, call: &Call<'a>) -> Result<GenaiAttempt<'a>, ProviderError> {
        let config = call.config()?;
        let selection = Selection::parse(config)?;
        let endpoint = self.access.endpoint(selection.provider, config).await?;
        let target = selection.target(&endpoint)?;
        let prepared = Prepared::new(call.request, selection)?;
        call.log_left_out(&prepared.tools.left_out);
        Ok(GenaiAttempt {
            target,
            key: endpoint.key,
            timeouts: options::timeouts(call.request, self.timeouts)?,
            prepared,
        })
    }
}
