//! The client of the LLM service: the port `Model` over one gRPC channel.
//!
//! Owns the connection and decides which errors mean that the service is unavailable. Knows nothing of sessions,
//! retries or prompts. The channel connects when it is first used, and again after every loss.

mod request;
mod providers;
mod answer;
mod limits;
mod retry;
mod failure;

use std::time::Duration;

use tokio::time::{Instant, timeout};
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use self::answer::Assembly;
pub use self::answer::assemble;
pub use self::providers::CheckError;
use crate::engine::ports::{Model, ModelError, ModelRequest};
use crate::investigation::execution::entry::Answer;
use crate::investigation::timeline::DeltaKind;
use crate::llm::proto::generate_response::Content;
use crate::llm::proto::llm_service_client::LlmServiceClient;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const HEALTH_TIMEOUT: Duration = Duration::from_secs(3);
/// A service that hangs is detected after the interval plus the timeout.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// The address of the LLM service is invalid.
#[derive(Debug, thiserror::Error)]
#[error("llm service address '{address}': {reason}")]
pub struct AddressError {
    address: String,
    reason: String,
}

/// A client of the LLM service. Clones share one connection.
#[derive(Clone, Debug)]
pub struct Client {
    channel: Channel,
}

impl Client {
    /// A client for `host:port` or `http://host:port`. It does not connect yet, but needs a Tokio runtime.
    ///
    /// # Errors
    /// When the address is malformed, or has a scheme for TLS, which is left to a proxy or service mesh.
    pub fn connect(address: &str) -> Result<Self, AddressError> {
        let invalid = |reason: String| AddressError { address: address.to_owned(), reason };
        let uri = match address.split_once("://") {
            None => format!("http://{address}"),
            Some(("http", _)) => address.to_owned(),
            Some((scheme, _)) => return Err(invalid(format!("scheme '{scheme}' is not supported, use host:port"))),
        };
        let endpoint = Endpoint::from_shared(uri).map_err(|error| invalid(error.to_string()))?;
        let channel = endpoint
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
            .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
            .keep_alive_while_idle(true)
            .connect_lazy();
        Ok(Self { channel })
    }

    /// Reads one answer to its end. `assembly` keeps what has arrived when the read is cancelled.
    async fn read(
        &self,
        request: ModelRequest,
        assembly: &mut Assembly,
        deltas: &(impl Fn(DeltaKind, &str) + Send + Sync),
    ) -> Result<(), ModelError> {
        let mut client =
            LlmServiceClient::new(self.channel.clone()).max_decoding_message_size(limits::MAX_ANSWER_BYTES);
        let (provider, request_id) = (request.provider.name.clone(), request.request_id.clone());
        let asked_at = Instant::now();
        let mut call = tonic::Request::new(request::wire(&request));
        call.set_timeout(request.timeout);
        let mut stream =
            client.generate(call).await.map_err(|status| failure::before_first_chunk(&status))?.into_inner();
        loop {
            match stream.message().await {
                Ok(Some(chunk)) => {
                    if let Some(Content::Retry(notice)) = &chunk.content {
                        retry::report(notice, &request_id, &provider);
                    }
                    if !assembly.has_begun && answer::is_of_answer(&chunk) {
                        let waited = asked_at.elapsed().as_secs_f64();
                        metrics::histogram!("tarsy_model_first_chunk_seconds", "provider" => provider.clone())
                            .record(waited);
                    }
                    if assembly.push(chunk, deltas)? {
                        return Ok(());
                    }
                }
                Ok(None) => return Err(failure::no_final_chunk()),
                Err(status) if assembly.has_begun => return Err(failure::after_first_chunk(&status)),
                Err(status) => return Err(failure::before_first_chunk(&status)),
            }
        }
    }
}

impl Model for Client {
    /// A call without a first chunk at its timeout has failed only if the health check of the service succeeds;
    /// otherwise the service is unavailable.
    async fn generate(
        &self,
        request: ModelRequest,
        deltas: impl Fn(DeltaKind, &str) + Send + Sync,
    ) -> Result<Answer, ModelError> {
        let limit = request.timeout;
        let mut assembly = Assembly::default();
        let outcome = match timeout(limit, self.read(request, &mut assembly, &deltas)).await {
            Ok(outcome) => outcome,
            Err(_elapsed) => Err(failure::timed_out(limit)),
        };
        match outcome {
            Ok(()) => Ok(assembly.finish()),
            Err(ModelError::Failed { timeout: true, .. }) if !assembly.has_begun && !self.serving().await => {
                Err(ModelError::Unavailable(format!("no answer within {limit:?} and not serving")))
            }
            Err(error) => Err(error),
        }
    }

    async fn serving(&self) -> bool {
        let mut health = HealthClient::new(self.channel.clone());
        let check = health.check(HealthCheckRequest { service: String::new() });
        match timeout(HEALTH_TIMEOUT, check).await {
            Ok(Ok(answer)) => answer.into_inner().status() == ServingStatus::Serving,
            Ok(Err(_)) | Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_is_a_host_and_a_port() {
        for good in ["127.0.0.1:50051", "http://llm.tarsy.svc:50051", "localhost:1"] {
            assert!(Client::connect(good).is_ok(), "{good}");
        }
        let fault = |address| Client::connect(address).unwrap_err().to_string();
        assert_eq!(
            fault("https://llm:443"),
            "llm service address 'https://llm:443': scheme 'https' is not supported, use host:port"
        );
        assert!(fault("not an address").starts_with("llm service address 'not an address': "));
    }
}
