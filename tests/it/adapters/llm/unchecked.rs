//! LLM services without a health check (`grpc.health.v1`).

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use tarsy_core::timeline::EventType;
use tarsy_engine::ports::{Model as _, ModelError};
use tarsy_llm::client::{Client, Health, ServiceFault};
use tarsy_llm::proto::generate_response::Content;
use tarsy_llm::proto::llm_service_server::{LlmService, LlmServiceServer};
use tarsy_llm::proto::{
    CheckProvidersRequest, CheckProvidersResponse, GenerateRequest, GenerateResponse, TextDelta,
};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use super::harness::{ask, request};
use crate::support::process::Tarsy;
use crate::support::system::TestSystem;

/// Answers every call with an analysis, or knows no call.
#[derive(Clone, Copy, Debug)]
enum Unchecked {
    Answers,
    KnowsNothing,
}

#[tonic::async_trait]
impl LlmService for Unchecked {
    type GenerateStream = BoxStream<'static, Result<GenerateResponse, Status>>;

    async fn generate(
        &self,
        _request: Request<GenerateRequest>,
    ) -> Result<Response<Self::GenerateStream>, Status> {
        if matches!(self, Self::KnowsNothing) {
            return Err(Status::unimplemented("unknown method"));
        }
        let text = Content::Text(TextDelta {
            content: "Cause: memory".to_owned(),
        });
        let chunks = [Some(text), None].map(|content| {
            let is_final = content.is_none();
            Ok(GenerateResponse { content, is_final })
        });
        Ok(Response::new(stream::iter(chunks).boxed()))
    }

    async fn check_providers(
        &self,
        _request: Request<CheckProvidersRequest>,
    ) -> Result<Response<CheckProvidersResponse>, Status> {
        Err(Status::unimplemented("unknown method"))
    }
}

async fn serve(service: Unchecked) -> (String, AbortOnDropHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let incoming = TcpIncoming::from(listener);
    let served = async move {
        Server::builder()
            .serve_with_incoming(LlmServiceServer::new(service), incoming)
            .await
            .unwrap();
    };
    (address, AbortOnDropHandle::new(tokio::spawn(served)))
}

#[tokio::test]
async fn a_service_without_a_health_check_is_used_until_a_call_disproves_it() {
    let (address, _service) = serve(Unchecked::Answers).await;
    let client = Client::connect(&address).unwrap();
    assert_eq!(client.check().await, Ok(Health::NoHealthCheck));
    assert_eq!(
        ask(&client, &request("test", "x")).await.unwrap().text,
        "Cause: memory"
    );
    assert!(client.serving().await);

    let (address, _service) = serve(Unchecked::KnowsNothing).await;
    let client = Client::connect(&address).unwrap();
    assert!(client.serving().await, "only a call can show what it is");
    let error = ask(&client, &request("test", "x")).await.unwrap_err();
    assert!(
        matches!(&error, ModelError::Unavailable(text) if text.contains("grpc.health.v1")),
        "{error:?}"
    );
    assert_eq!(client.check().await, Err(ServiceFault::NoService));
    assert!(!client.serving().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_uses_a_service_without_a_health_check_and_names_it_once() {
    let (address, _service) = serve(Unchecked::Answers).await;
    let system = TestSystem::start(&[]).await;
    let env = system.env(system.database.url());
    let mut env = env.each();
    env[2].1 = &address;
    let mut worker = Tarsy::spawn("w1", &["worker", "--name", "w1"], &env);
    worker.ready().await;
    let session = system.publish().await;
    let end = system.follow(session).await.finish().await;
    assert_eq!(end.event_type, EventType::SessionCompleted, "{end:?}");
    let log = worker.log();
    let lines = |text: &str| log.lines().filter(|line| line.contains(text)).count();
    assert_eq!(
        lines("llm-service has no health check (grpc.health.v1)"),
        1,
        "{log}"
    );
    assert_eq!(
        lines("llm-service without a health check (grpc.health.v1) works"),
        1,
        "{log}"
    );
}
