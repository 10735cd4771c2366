//! The LLM service: `llm.v1.LLMService`, the health check and the reflection of gRPC on one port.
//!
//! The service is stateless, because a request carries its whole conversation. This file owns the life of the server
//! and of each stream; a backend produces an answer and writes it with a [`writer::ResponseWriter`].

pub mod security;
mod limited;
mod guard;
mod running;
pub mod call;
pub mod backend;
pub mod scripted;
mod vertex;
pub mod google;
pub mod genai;
pub mod provider;
pub mod writer;
mod observed;
pub mod labels;
mod declared_tools;
mod counted;

use std::time::Duration;

use axum::middleware::from_fn_with_state;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};
use tonic_health::ServingStatus;
use tracing::{Instrument as _, Span};

use self::backend::Backends;
use self::call::{Call, Deadline};
use self::counted::CountedRequest;
use self::guard::guard;
use self::labels::ProviderLabel;
use self::limited::limited;
use self::provider::{ErrorCode, ProviderError};
use self::running::Running;
use self::security::Security;
use self::writer::ResponseWriter;
use crate::proto::llm_service_server::{LlmService, LlmServiceServer};
use crate::proto::{
    CheckProvidersRequest, CheckProvidersResponse, DESCRIPTORS, GenerateRequest, GenerateResponse,
    MAX_MESSAGE_BYTES,
};
use tarsy_core::ids::SessionId;
use tarsy_core::intake::headers::TRACEPARENT;
use tarsy_core::trace_context::TraceContext;
use tarsy_engine::trace::servers;

/// Chunks that may wait for a slow client.
const STREAM_BUFFER: usize = 32;
/// The most providers of one request for a check.
const MAX_CHECKED_PROVIDERS: usize = 256;
/// The time limit for clients that do not close their connection after the last answer.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// The server did not start, or failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("llm service: {0}")]
    Server(#[from] tonic::transport::Error),
    /// The description of the protocol cannot be read.
    #[error("llm service: reflection: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
}

/// The settings of a service, its clients and its stop.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The section of the configuration: limits, and the longest time that answers may continue after a stop; then
    /// their streams end with UNAVAILABLE.
    pub settings: tarsy_config::LlmService,
    /// Cancelled when a stop should not wait for the answers.
    pub stop_now: CancellationToken,
    /// The clients that may call the service.
    pub security: Security,
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
    /// running ones may finish until the drain timeout or [`Options::stop_now`].
    ///
    /// # Errors
    /// When the server fails on the listener.
    pub async fn serve(self, listener: TcpListener, token: CancellationToken) -> Result<(), Error> {
        let (health, health_service) = tonic_health::server::health_reporter();
        health.set_service_status("", ServingStatus::Serving).await;
        health.set_serving::<LlmServiceServer<Calls>>().await;
        let answers = TaskTracker::new();
        let stop = CancellationToken::new();
        let Options {
            settings,
            stop_now,
            security,
        } = self.options;
        let max_request_bytes = usize::try_from(settings.max_request_bytes).unwrap_or(usize::MAX);
        let calls = Calls {
            backends: self.backends,
            answers: answers.clone(),
            stop: stop.clone(),
            running: Running::new(settings.concurrency),
            max_messages: settings.max_messages,
            max_tools: settings.max_tools,
        };
        let llm = LlmServiceServer::new(calls)
            .max_decoding_message_size(max_request_bytes)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let reflection = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .build_v1()?;
        let incoming = limited(
            TcpIncoming::from(listener).with_nodelay(Some(true)),
            security.tls(),
        );
        // The reads end with this function, however it ends.
        let _reads = AbortOnDropHandle::new(tokio::spawn(security.clone().keep_up()));
        let services = Routes::new(llm)
            .add_service(health_service)
            .add_service(reflection);
        let guarded = services
            .into_axum_router()
            .layer(from_fn_with_state(security, guard));
        let server = Server::builder()
            .http2_keepalive_interval(Some(KEEP_ALIVE_INTERVAL))
            .http2_keepalive_timeout(Some(KEEP_ALIVE_TIMEOUT))
            .add_routes(Routes::from(guarded))
            .serve_with_incoming_shutdown(incoming, token.clone().cancelled_owned());
        tokio::pin!(server);
        tokio::select! {
            result = &mut server => return Ok(result?),
            () = token.cancelled() => {}
        }
        // The health changes first, so that workers pause before their calls are refused.
        health
            .set_service_status("", ServingStatus::NotServing)
            .await;
        health.set_not_serving::<LlmServiceServer<Calls>>().await;
        answers.close();
        let drained = async {
            // An answer may end within the time-out; the stream of any other is aborted.
            tokio::select! {
                () = answers.wait() => {}
                () = tokio::time::sleep(settings.drain_timeout) => {}
                () = stop_now.cancelled() => {}
            }
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
    running: Running,
    max_messages: u32,
    max_tools: u32,
}

impl Calls {
    /// The fault of a request that has more than the limits allow.
    fn check(&self, request: &GenerateRequest) -> Result<(), ProviderError> {
        let counts = [
            (request.messages.len(), self.max_messages, "messages"),
            (request.tools.len(), self.max_tools, "tools"),
        ];
        for (count, limit, what) in counts {
            if u32::try_from(count).is_ok_and(|count| count <= limit) {
                continue;
            }
            let message = format!(
                "The request has {count} {what}; llm_service.max_{what} of this service allows {limit}"
            );
            return Err(ProviderError::invalid_request(message));
        }
        Ok(())
    }
}

#[tonic::async_trait]
impl LlmService for Calls {
    type GenerateStream = ReceiverStream<Result<GenerateResponse, Status>>;

    async fn generate(
        &self,
        request: Request<GenerateRequest>,
    ) -> Result<Response<Self::GenerateStream>, Status> {
        if self.answers.is_closed() {
            return Err(Status::unavailable("shutting down"));
        }
        let deadline = Deadline::from_metadata(request.metadata());
        let parent = request
            .metadata()
            .get(TRACEPARENT)
            .and_then(|value| TraceContext::parse(value.to_str().ok()?));
        let request = declared_tools::resolved(request.into_inner());
        let span = servers::generate(
            SessionId::parse(&request.session_id),
            &request.execution_id,
            parent,
        );
        let _in_span = span.clone().entered();
        let (sender, receiver) = mpsc::channel(STREAM_BUFFER);
        let writer = ResponseWriter::new(sender, &request.accept);
        let config = request.llm_config.as_ref();
        let name = config.map_or("", |config| config.backend.as_str());
        tracing::info!(
            session_id = request.session_id,
            execution_id = request.execution_id,
            request_id = request.request_id,
            backend = name,
            "model call received"
        );
        let backend = self.backends.find(name);
        let backend_name = backend.as_ref().ok().map(|backend| backend.name());
        let provider = ProviderLabel::from_request(&request);
        let permit = self.running.begin(provider).map_err(|refusal| {
            tracing::warn!(
                request_id = request.request_id,
                "model call refused: {refusal}"
            );
            counted::count_refused(backend_name);
            Status::resource_exhausted(refusal)
        })?;
        let counted = CountedRequest::begin(writer, backend_name, provider, permit);
        let stop = self.stop.clone();
        let checked = self.check(&request);
        let answering = async move {
            let writer = &counted.writer;
            let answer = async {
                if let Err(fault) = checked {
                    return writer.fail(fault).await;
                }
                match backend {
                    Ok(backend) => {
                        let request = &request;
                        let call = Call {
                            request,
                            deadline,
                            writer,
                        };
                        backend.generate(&call).await;
                    }
                    Err(unknown) => {
                        let fault = ProviderError::new(ErrorCode::InvalidBackend, unknown);
                        writer.fail(fault).await;
                    }
                }
            };
            tokio::select! {
                () = writer.client_gone() => {}
                () = stop.cancelled() => writer.abort(Status::unavailable("shutting down")),
                () = answer => {}
            }
            counted.mark_failure(&Span::current());
        };
        self.answers.spawn(answering.instrument(span));
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn check_providers(
        &self,
        request: Request<CheckProvidersRequest>,
    ) -> Result<Response<CheckProvidersResponse>, Status> {
        let configs = request.into_inner().providers;
        if configs.len() > MAX_CHECKED_PROVIDERS {
            return Err(Status::invalid_argument(format!(
                "at most {MAX_CHECKED_PROVIDERS} providers can be checked"
            )));
        }
        let mut providers = Vec::with_capacity(configs.len());
        for config in &configs {
            providers.push(self.backends.check(config).await);
        }
        Ok(Response::new(CheckProvidersResponse { providers }))
    }
}
