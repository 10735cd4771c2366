//! Asks the LLM service whether it could call providers. It knows its variables and what requests may use.

use std::time::Duration;

use tonic::Code;

use super::{Client, failure, request};
use crate::proto::llm_service_client::LlmServiceClient;
use crate::proto::{CheckProvidersRequest, ProviderCheck};
use tarsy_core::plan::ProviderPlan;
use tarsy_engine::ports::ModelError;

const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// The reason why the LLM service did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// The service does not have this method, as the existing service.
    #[error("this LLM service cannot tell")]
    Unsupported,
    #[error("{0}")]
    Unavailable(String),
    /// The service refuses the request, for example because of a missing token.
    #[error("{0}")]
    Refused(String),
}

impl Client {
    /// Asks whether calls to these providers could be sent. The answers are in the order of `providers`, at most 256.
    ///
    /// # Errors
    /// When the service does not answer within 5 s, does not know the method, or refuses the request.
    pub async fn check_providers(
        &self,
        providers: &[ProviderPlan],
    ) -> Result<Vec<ProviderCheck>, CheckError> {
        let mut client = LlmServiceClient::new(self.channel.clone());
        let providers: Vec<_> = providers.iter().map(request::config).collect();
        let count = providers.len();
        let mut call = tonic::Request::new(CheckProvidersRequest { providers });
        call.set_timeout(CHECK_TIMEOUT);
        self.authorize(&mut call)
            .map_err(|error| CheckError::Refused(error.to_string()))?;
        let answer = match tokio::time::timeout(CHECK_TIMEOUT, client.check_providers(call)).await {
            Ok(answer) => answer,
            Err(_elapsed) => {
                return Err(CheckError::Unavailable(format!(
                    "no answer within {CHECK_TIMEOUT:?}"
                )));
            }
        };
        let checks = answer
            .map_err(|status| fault(&status))?
            .into_inner()
            .providers;
        if checks.len() == count {
            Ok(checks)
        } else {
            Err(CheckError::Unsupported)
        }
    }
}

fn fault(status: &tonic::Status) -> CheckError {
    if status.code() == Code::Unimplemented {
        return CheckError::Unsupported;
    }
    if status.code() == Code::Unauthenticated {
        return CheckError::Refused(status.message().to_owned());
    }
    match failure::before_first_chunk(status) {
        ModelError::Unavailable(reason) | ModelError::Broke(reason) => {
            CheckError::Unavailable(reason)
        }
        ModelError::Failed { message, .. } => CheckError::Refused(message),
    }
}
