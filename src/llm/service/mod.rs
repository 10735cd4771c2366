//! The LLM service: `llm.v1.LLMService` and `grpc.health.v1.Health` on one port.
//!
//! Stateless: a request carries its whole conversation. This file owns the life of the server and of each stream; the
//! backends write the answers, [`reply`] gives them their form.

pub mod backend;
mod counted;
pub mod reply;
pub mod routes;
pub mod scripted;
mod limited;

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
use self::counted::Counted;
use self::limited::limited;
use self::reply::Reply;
use self::routes::Routes;
use crate::llm::proto::llm_service_server::{LlmService, LlmServiceServer};
use crate::llm::proto::{GenerateRequest, GenerateResponse, MAX_MESSAGE_BYTES};

/// Chunks that may wait for a slow client.
const STREAM_BUFFER: usize = 32;
const DRAIN: Duration = Duration::from_secs(30);
/// For connections whose peer does not close them after the last answer.
const LINGER: Duration = Duration::from_secs(2);
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// The server did not come up or broke down.
#[derive(Debug, thiserror::Error)]
#[error("llm service: {0}")]
pub struct Error(#[from] tonic::transport::Error);

/// A service that is ready to run.
#[derive(Debug)]
pub struct Service {
    backends: Backends,
    drain: Duration,
}

impl Service {
    /// A service with these backends.
    pub fn new(backends: Backends) -> Self {
        Self { backends, drain: DRAIN }
    }

    /// How long answers may go on after the token is cancelled; then their streams end with UNAVAILABLE. 30 s by
    /// default.
    #[must_use]
    pub fn with_drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// Serves until `token` is cancelled: then the health is `NOT_SERVING` at once, no call is taken any more, and
    /// those that run may finish.
    ///
    /// # Errors
    /// When the server cannot work on the listener.
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
            .http2_keepalive_interval(Some(KEEP_ALIVE))
            .http2_keepalive_timeout(Some(KEEP_ALIVE))
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
            tokio::time::timeout(self.drain, answers.wait()).await.ok();
            stop.cancel();
            answers.wait().await;
            tokio::time::sleep(LINGER).await;
        };
        tokio::select! {
            result = &mut server => Ok(result?),
            () = drained => Ok(()),
        }
    }
}

/// The method of the service.
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
        let request = request.into_inner();
        let (sender, receiver) = mpsc::channel(STREAM_BUFFER);
        let reply = Reply::new(sender, &request.accept);
        let name = request.llm_config.as_ref().map_or("", |config| config.backend.as_str());
        tracing::info!(
            session_id = request.session_id,
            execution_id = request.execution_id,
            request_id = request.request_id,
            backend = name,
            "model is asked"
        );
        let backend = self.backends.find(name);
        let counted = Counted::begin(reply, backend.as_ref().ok().map(|backend| backend.name()));
        let stop = self.stop.clone();
        self.answers.spawn(async move {
            let reply = counted.reply();
            tokio::select! {
                () = reply.client_gone() => {}
                () = stop.cancelled() => reply.abort(Status::unavailable("shutting down")),
                () = async {
                    match backend {
                        Ok(backend) => backend.generate(&request, reply).await,
                        Err(unknown) => reply.error("invalid_backend", &unknown.to_string()).await,
                    }
                } => {}
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}
