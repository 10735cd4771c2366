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
mod credentials;
mod check;
mod unchecked;

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower::{BoxError, service_fn};

use self::answer::Assembly;
pub use self::answer::{Observed, assemble};
pub use self::check::{HEALTH_CHECK, Health, ServiceFault};
use self::check::{SentToken, is_unknown_call, of_health};
pub use self::credentials::{ClientCertificate, Credentials};
pub use self::providers::CheckError;
pub use self::request::wire;
use self::unchecked::UncheckedService;
use crate::pem::FileError;
use crate::proto::MAX_ANSWER_BYTES;
use crate::proto::generate_response::Content;
use crate::proto::llm_service_client::LlmServiceClient;
use tarsy_core::execution::entry::Answer;
use tarsy_core::intake::headers::TRACEPARENT;
use tarsy_core::timeline::DeltaKind;
use tarsy_engine::ports::{Model, ModelError, ModelRequest};
use tarsy_engine::trace;
use tarsy_http::outgoing::tls;
use tarsy_mask::Mask;

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
    credentials: Arc<Credentials>,
    /// Hides each token from the moment at which it is read.
    mask: Mask,
    /// The wrong setting that was logged last.
    logged: Arc<Mutex<Option<ServiceFault>>>,
    /// The address of the service, for logs.
    address: Arc<str>,
    unchecked: Arc<UncheckedService>,
}

impl Client {
    /// A client without credentials, as [`Self::with_credentials`].
    ///
    /// # Errors
    /// When the address is malformed.
    pub fn connect(address: &str) -> Result<Self, AddressError> {
        Self::with_credentials(address, Credentials::default())
    }

    /// A client for `host:port` or `http://host:port`, or with TLS for `https://host:port`. It does not connect yet,
    /// but needs a Tokio runtime.
    ///
    /// # Errors
    /// When the address is malformed, or has no `https` although the credentials have files of TLS.
    pub fn with_credentials(address: &str, credentials: Credentials) -> Result<Self, AddressError> {
        let invalid = |reason: String| AddressError {
            address: address.to_owned(),
            reason,
        };
        let (uri, has_tls) = match address.split_once("://") {
            None => (format!("http://{address}"), false),
            Some(("http", _)) => (address.to_owned(), false),
            Some(("https", _)) => (address.to_owned(), true),
            Some((scheme, _)) => {
                return Err(invalid(format!(
                    "scheme '{scheme}' is not supported, use host:port or https://host:port"
                )));
            }
        };
        if credentials.has_tls_files() && !has_tls {
            return Err(invalid(
                "files of TLS are set, so it has to begin with https://".to_owned(),
            ));
        }
        let endpoint = Endpoint::from_shared(uri)
            .map_err(|error| invalid(error.to_string()))?
            .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
            .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
            // Otherwise the next call would be the first to find that the service is gone.
            .keep_alive_while_idle(true);
        let credentials = Arc::new(credentials);
        let channel = if has_tls {
            let credentials = Arc::clone(&credentials);
            endpoint.connect_with_connector_lazy(service_fn(move |uri| {
                // The files are read for each connection.
                let config = credentials.tls();
                async move { Ok::<_, BoxError>(tls::connect(uri, config?, CONNECT_TIMEOUT).await?) }
            }))
        } else {
            endpoint.connect_timeout(CONNECT_TIMEOUT).connect_lazy()
        };
        Ok(Self {
            channel,
            credentials,
            mask: Mask::default(),
            logged: Arc::default(),
            address: address.into(),
            unchecked: Arc::default(),
        })
    }

    /// The client, which adds each token that it reads to this mask.
    pub fn masking(self, mask: Mask) -> Self {
        Self { mask, ..self }
    }

    /// Checks that the service serves and accepts this client's token and certificate. A service without a health check
    /// may be used until a call disproves it.
    ///
    /// # Errors
    /// When it cannot be used.
    pub async fn check(&self) -> Result<Health, ServiceFault> {
        let mut request = Request::new(HealthCheckRequest {
            service: String::new(),
        });
        let sent_token = self.authorize(&mut request).map_err(ServiceFault::File)?;
        let mut health = HealthClient::new(self.channel.clone());
        let health = match timeout(HEALTH_TIMEOUT, health.check(request)).await {
            Ok(checked) => of_health(checked, sent_token)?,
            Err(_elapsed) => {
                return Err(ServiceFault::Unavailable(format!(
                    "no answer within {HEALTH_TIMEOUT:?}"
                )));
            }
        };
        match health {
            Health::NoHealthCheck if !self.unchecked.may_serve(&self.address) => {
                Err(ServiceFault::NoService)
            }
            Health::Serving | Health::NoHealthCheck => Ok(health),
        }
    }

    fn authorize<T>(&self, request: &mut Request<T>) -> Result<SentToken, FileError> {
        let Some(bearer) = self.credentials.bearer(&self.mask)? else {
            return Ok(SentToken::No);
        };
        request.metadata_mut().insert("authorization", bearer);
        Ok(SentToken::Yes)
    }

    /// Logs a wrong setting when it is found, and not again until it changes.
    fn log(&self, fault: Option<ServiceFault>) {
        let fault = fault.filter(ServiceFault::is_configuration);
        let mut logged = self.logged.lock();
        if let Some(fault) = &fault
            && logged.as_ref() != Some(fault)
        {
            tracing::error!(fix = fault.fix(), "llm-service cannot be used: {fault}");
        }
        *logged = fault;
    }

    /// Reads one answer to its end. `assembly` keeps what has arrived when the read is cancelled.
    async fn read(
        &self,
        request: ModelRequest,
        assembly: &mut Assembly,
        deltas: &(impl Fn(DeltaKind, &str) + Send + Sync),
    ) -> Result<(), ModelError> {
        let mut client =
            LlmServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_ANSWER_BYTES);
        let asked_at = Instant::now();
        let mut call = Request::new(wire(&request));
        // The service gets the limit as well, and ends the call at the provider in time.
        call.set_timeout(request.timeout);
        let provider = request.provider.name;
        let request_id = request.request_id;
        // Nothing keeps the conversation while the answer arrives.
        drop((request.messages, request.tools, request.declared_tools));
        self.authorize(&mut call)
            .map_err(|error| ModelError::Unavailable(error.to_string()))?;
        let context = trace::outgoing().and_then(|context| context.to_string().parse().ok());
        if let Some(context) = context {
            call.metadata_mut().insert(TRACEPARENT, context);
        }
        // Boxed, because this future is large and each waiting session has one.
        let mut stream = Box::pin(client.generate(call))
            .await
            .map_err(|status| self.not_begun(&status))?
            .into_inner();
        loop {
            match stream.message().await {
                Ok(Some(chunk)) => {
                    if let Some(Content::Retry(notice)) = &chunk.content {
                        retry::report(notice, &request_id, &provider);
                    }
                    if !assembly.has_begun && answer::is_of_answer(&chunk) {
                        let waited = asked_at.elapsed();
                        assembly.first_chunk = Some(waited);
                        metrics::histogram!("tarsy_model_first_chunk_seconds", "provider" => provider.clone())
                            .record(waited.as_secs_f64());
                    }
                    if assembly.push(chunk, deltas)? {
                        self.unchecked.succeeded(&self.address);
                        return Ok(());
                    }
                }
                Ok(None) => return Err(failure::no_final_chunk()),
                Err(status) if assembly.has_begun => {
                    return Err(failure::after_first_chunk(&status));
                }
                Err(status) => return Err(self.not_begun(&status)),
            }
        }
    }

    /// A call that failed before its first chunk. A server that has neither a health check nor this call is not known
    /// to be an LLM service.
    fn not_begun(&self, status: &Status) -> ModelError {
        if is_unknown_call(status) && self.unchecked.refuted() {
            return ModelError::Unavailable(ServiceFault::NoService.to_string());
        }
        failure::before_first_chunk(status)
    }

    /// One answer with the observations of its stream, for people who check a provider.
    ///
    /// # Errors
    /// Those of [`Model::generate`].
    pub async fn observe(&self, request: ModelRequest) -> Result<Observed, ModelError> {
        Ok(self
            .assembled(request, &|_, _| {})
            .await?
            .observed(&|_, _| {}))
    }

    /// The whole answer. A call without a first chunk at its timeout has failed only if the health check of the
    /// service succeeds; otherwise the service is unavailable.
    async fn assembled(
        &self,
        request: ModelRequest,
        deltas: &(impl Fn(DeltaKind, &str) + Send + Sync),
    ) -> Result<Assembly, ModelError> {
        let limit = request.timeout;
        let mut assembly = Assembly::default();
        let outcome = match timeout(limit, self.read(request, &mut assembly, deltas)).await {
            Ok(outcome) => outcome,
            Err(_elapsed) => Err(failure::timed_out(limit)),
        };
        match outcome {
            Ok(()) => Ok(assembly),
            Err(ModelError::Failed { timeout: true, .. })
                if !assembly.has_begun && !self.serving().await =>
            {
                Err(ModelError::Unavailable(format!(
                    "no answer within {limit:?} and not serving"
                )))
            }
            Err(error) => Err(error),
        }
    }
}

impl Model for Client {
    async fn generate(
        &self,
        request: ModelRequest,
        deltas: impl Fn(DeltaKind, &str) + Send + Sync,
    ) -> Result<Answer, ModelError> {
        Ok(self.assembled(request, &deltas).await?.finish(&deltas))
    }

    async fn serving(&self) -> bool {
        let fault = self.check().await.err();
        let is_serving = fault.is_none();
        self.log(fault);
        is_serving
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_is_a_host_and_a_port() {
        for good in [
            "127.0.0.1:50051",
            "http://llm.tarsy.svc:50051",
            "localhost:1",
            "https://llm:443",
        ] {
            assert!(Client::connect(good).is_ok(), "{good}");
        }
        let fault = |address| Client::connect(address).unwrap_err().to_string();
        assert_eq!(
            fault("grpc://llm:443"),
            "llm service address 'grpc://llm:443': scheme 'grpc' is not supported, use host:port or https://host:port"
        );
        let credentials = Credentials {
            ca: Some("/ca.pem".into()),
            ..Credentials::default()
        };
        assert_eq!(
            Client::with_credentials("llm:1", credentials)
                .unwrap_err()
                .to_string(),
            "llm service address 'llm:1': files of TLS are set, so it has to begin with https://"
        );
        assert!(fault("not an address").starts_with("llm service address 'not an address': "));
    }
}
