//! A service that never ends its answer, and the limits of the client.
//!
//! More than a million empty chunks reach a limit, too: that runs in `./dev prove`, and the suite sends larger chunks.

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use tarsy_core::timeline::EventType;
use tarsy_llm::client::Client;
use tarsy_llm::proto::generate_response::Content;
use tarsy_llm::proto::llm_service_server::{LlmService, LlmServiceServer};
use tarsy_llm::proto::{
    CheckProvidersRequest, CheckProvidersResponse, GenerateRequest, GenerateResponse, ProviderData,
    TextDelta, ToolCallDelta,
};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};
use tonic_health::ServingStatus;

use super::harness::{ask, failed, request};
use crate::support::figures::is_proof;
use crate::support::process::{Tarsy, peak_memory};
use crate::support::system::{Setup, TestSystem};

/// Answers every request with this chunk, again and again.
#[derive(Debug)]
struct Endless(Content);

#[tonic::async_trait]
impl LlmService for Endless {
    type GenerateStream = BoxStream<'static, Result<GenerateResponse, Status>>;

    async fn generate(
        &self,
        _request: Request<GenerateRequest>,
    ) -> Result<Response<Self::GenerateStream>, Status> {
        let chunk = GenerateResponse {
            content: Some(self.0.clone()),
            is_final: false,
        };
        Ok(Response::new(
            stream::repeat_with(move || Ok(chunk.clone())).boxed(),
        ))
    }

    async fn check_providers(
        &self,
        _request: Request<CheckProvidersRequest>,
    ) -> Result<Response<CheckProvidersResponse>, Status> {
        Err(Status::unimplemented("as the existing service"))
    }
}

async fn serve(content: Content) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_service_status("", ServingStatus::Serving).await;
    let service = LlmServiceServer::new(Endless(content));
    let incoming = TcpIncoming::from(listener);
    (
        address,
        tokio::spawn(async move {
            Server::builder()
                .add_service(service)
                .add_service(health_service)
                .serve_with_incoming(incoming)
                .await
                .unwrap()
        }),
    )
}

fn text(bytes: usize) -> Content {
    Content::Text(TextDelta {
        content: "x".repeat(bytes),
    })
}

#[tokio::test]
async fn an_endless_answer_is_dropped_and_fails_with_the_limit_that_it_exceeds() {
    let call = ToolCallDelta {
        call_id: String::new(),
        name: "drill.describe_pod".into(),
        arguments: "{}".into(),
    };
    let data = ProviderData {
        payload: vec![0; 4 << 10],
        ..ProviderData::default()
    };
    let small = if is_proof() {
        text(0)
    } else {
        Content::ProviderData(data)
    };
    for (content, limit) in [
        (text(1 << 20), "4 MiB of text"),
        (Content::ToolCall(call), "256 calls"),
        (small, "32 MiB in all"),
        (text(40 << 20), "32 MiB in all"),
    ] {
        let (address, service) = serve(content).await;
        let client = Client::connect(&address).unwrap();
        let (code, message, timeout) = failed(ask(&client, &request("test", "x")).await);
        assert_eq!((code.as_str(), timeout), ("answer_too_large", false));
        assert_eq!(message, format!("the answer is too large: at most {limit}"));
        service.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_whose_model_never_stops_ends_the_investigation_in_bounded_memory() {
    let setup = Setup {
        sections: "defaults: {max_iterations: 3, iteration_timeout: 30s}\n",
        ..Setup::default()
    };
    let system = TestSystem::start_with(setup).await;
    let (address, service) = serve(text(1 << 20)).await;
    let env = system.env(system.database.url());
    let mut env = env.each();
    env[2].1 = &address;
    let mut worker = Tarsy::spawn("w1", &["worker", "--name", "w1"], &env);
    worker.ready().await;
    let before = peak_memory(&worker);
    let session = system.publish().await;
    let mut timeline = system.follow(session).await;
    let end = timeline.finish().await;
    assert_eq!(end.event_type, EventType::SessionFailed);
    assert!(
        end.content
            .contains("the answer is too large: at most 4 MiB of text"),
        "{end:?}"
    );
    let most = peak_memory(&worker);
    println!("a worker with an endless answer: {before} MiB before, at most {most} MiB");
    assert!(most < 160, "{most} MiB");
    service.abort();
}
