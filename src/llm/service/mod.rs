//! The LLM service: `llm.v1.LLMService` and `grpc.health.v1.Health` on one port.
//!
//! The service is stateless, because a request carries its whole conversation. This file owns the life of the server
//! and of each stream; a backend produces an answer and writes it with a [`writer::ResponseWriter`].

mod limited;
pub mod routes;
pub mod call;
pub mod backend;
pub mod scripted;
pub mod google;
pub mod genai;
pub mod provider;
pub mod writer;
mod counted;

use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};
use tonic_health::ServingStatus;

use self::backend::Backends;
use self::call::{Call, Deadline};
use self::counted::CountedRequest;
use self::limited::limited;
use self::provider::{ErrorCode, ProviderError};
use self::routes::Routes;
use self::writer::ResponseWriter;
use crate::llm::proto::llm_service_server::{LlmService, LlmServiceServer};
use crate::llm::proto::{
    CheckProvidersRequest, CheckProvidersResponse, GenerateRequest, GenerateResponse, MAX_MESSAGE_BYTES,
};

/// Chunks that may wait for a slow client.
const STREAM_BUFFER: usize = 32;
/// The most providers of one request for a check.
const MAX_CHECKED_PROVIDERS: usize = 256;
/// For clients that do not close their connection after the last answer.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// The server did not start, or failed.
#[derive(Debug, thiserror::Error)]
#[error("llm service: {0}")]
pub struct Error(#[from] tonic::transport::Error);

/// The settings of a service.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long answers may continue after a stop; then their streams end with UNAVAILABLE.
    pub drain_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { drain_timeout: Duration::from_secs(30) }
    }
}

/// The LLM service.
#[derive(Debug)]
pub struct Service {
    backends: Backends,
    options: Options,
}

impl Service {
    pub fn new(backends: Backends, options: Options) -> Self {
        Self { backends, options }
    }

    /// Serves until `token` is cancelled. Then the health is `NOT_SERVING` at once, new calls are refused, and the
    /// running ones may finish.
    ///
    /// # Errors
    /// When the server fails on the listener.
    pub async fn serve(self, listener: TcpListener, token: CancellationToken) -> Result<(), Error> {
        let (health, health_service) = tonic_health::server::health_reporter();
        health.set_service_status("", ServingStatus::Serving).await;
        health.set_serving::<LlmServiceServer<Calls>>().await;
        let answers = TaskTracker::new();
        let stop = CancellationToken::new();
        let calls = Calls { backends: self.backends, answers: answers.clone(), stop: stop.clone() };
        let llm = LlmServiceServer::new(calls).max_decoding_message_size(MAX_MESSAGE_BYTES);
        let incoming = limited(TcpIncoming::from(listener).with_nodelay(Some(true)));
        let server = Server::builder()
            .http2_keepalive_interval(Some(KEEP_ALIVE_INTERVAL))
            .http2_keepalive_timeout(Some(KEEP_ALIVE_TIMEOUT))
            .serve_with_incoming_shutdown(Routes::new(llm, health_service), incoming, token.clone().cancelled_owned());
        tokio::pin!(server);
        tokio::select! {
            result = &mut server => return Ok(result?),
            () = token.cancelled() => {}
        }
        health.set_service_status("", ServingStatus::NotServing).await;
        health.set_not_serving::<LlmServiceServer<Calls>>().await;
        answers.close();
        let drained = async {
            tokio::time::timeout(self.options.drain_timeout, answers.wait()).await.ok();
            stop.cancel();
            answers.wait().await;
            tokio::time::sleep(CLOSE_TIMEOUT).await;
        };
        tokio::select! {
            result = &mut server => Ok(result?),
            () = drained => Ok(()),
        }
    }
}

/// Handles the calls of the service.
#[derive(Debug)]
struct Calls {
    backends: Backends,
    answers: TaskTracker,
    stop: CancellationToken,
}

#[tonic::async_trait]
impl LlmService for Calls {
    type GenerateStream = ReceiverStream<Result<GenerateResponse, Status>>;

    async fn generate(&self, request: Request<GenerateRequest>) -> Result<Response<Self::GenerateStream>, Status> {
        if self.answers.is_closed() {
            return Err(Status::unavailable("shutting down"));
        }
        let deadline = Deadline::of(request.metadata());
        let request = request.into_inner();
        let (sender, receiver) = mpsc::channel(STREAM_BUFFER);
        let writer = ResponseWriter::new(sender, &request.accept);
        let name = request.llm_config.as_ref().map_or("", |config| config.backend.as_str());
        tracing::info!(
            session_id = request.session_id,
            execution_id = request.execution_id,
            request_id = request.request_id,
            backend = name,
            "model call received"
        );
        let backend = self.backends.find(name);
        let counted = CountedRequest::begin(writer, backend.as_ref().ok().map(|backend| backend.name()));
        let stop = self.stop.clone();
        self.answers.spawn(async move {
            let writer = &counted.writer;
            tokio::select! {
                () = writer.client_gone() => {}
                () = stop.cancelled() => writer.abort(Status::unavailable("shutting down")),
                () = async {
                    match backend {
                        Ok(backend) => backend.generate(&Call { request: &request, deadline, writer }).await,
                        Err(unknown) => writer.fail(ProviderError::new(ErrorCode::InvalidBackend, unknown)).await,
                    }
                } => {}
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
    async fn check_providers(
        &self,
        request: Request<CheckProvidersRequest>,
    ) -> Result<Response<CheckProvidersResponse>, Status> {
        let configs = request.into_inner().providers;
        if configs.len() > MAX_CHECKED_PROVIDERS {
            return Err(Status::invalid_argument(format!("at most {MAX_CHECKED_PROVIDERS} providers can be checked")));
        }
        let mut providers = Vec::with_capacity(configs.len());
        for config in &configs {
            providers.push(self.backends.check(config).await);
        }
        Ok(Response::new(CheckProvidersResponse { providers }))
    }
}
