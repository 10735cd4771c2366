//! The settings of a provider, on their way from the configuration of a worker to the LLM service.

use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use tarsy_core::timeline::EventType;
use tarsy_llm::proto::generate_response::Content;
use tarsy_llm::proto::llm_service_server::{LlmService, LlmServiceServer};
use tarsy_llm::proto::{
    CheckProvidersRequest, CheckProvidersResponse, GenerateRequest, GenerateResponse, LlmConfig,
    TextDelta, ThinkingConfig,
};
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};
use tonic_health::ServingStatus;

use crate::support::process::Tarsy;
use crate::support::system::{Setup, TestSystem};

/// Keeps every request, and answers it with an analysis.
#[derive(Clone, Debug, Default)]
struct Recorder(Arc<Mutex<Vec<GenerateRequest>>>);

#[tonic::async_trait]
impl LlmService for Recorder {
    type GenerateStream = BoxStream<'static, Result<GenerateResponse, Status>>;

    async fn generate(
        &self,
        request: Request<GenerateRequest>,
    ) -> Result<Response<Self::GenerateStream>, Status> {
        self.0.lock().unwrap().push(request.into_inner());
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
        Err(Status::unimplemented("as the existing service"))
    }
}

const SECTIONS: &str = "\
llm_providers:
  gemini:
    provider: google
    model: gemini-3-flash-preview
    api_key_env: GEMINI_API_KEY
    base_url: http://127.0.0.1:9/proxy
    native_tools: {google_search: true, url_context: true}
    native_tools_mode: combine
    thinking: {level: low}
    max_output_tokens: 8k
    temperature: 0.3
    project: my-project-1
    location: europe-west4
    credentials_env: GOOGLE_APPLICATION_CREDENTIALS
agents:
  sre: {native_tools: {url_context: false, code_execution: true}}
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_sends_every_configured_setting_of_its_provider() {
    let recorder = Recorder::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_service_status("", ServingStatus::Serving).await;
    let recording = LlmServiceServer::new(recorder.clone());
    let incoming = TcpIncoming::from(listener);
    let service = tokio::spawn(async move {
        Server::builder()
            .add_service(recording)
            .add_service(health_service)
            .serve_with_incoming(incoming)
            .await
            .unwrap()
    });

    let system = TestSystem::start_with(Setup {
        sections: SECTIONS,
        ..Setup::default()
    })
    .await;
    let env = system.env(system.database.url());
    let mut env = env.each();
    env[2].1 = &address;
    let mut worker = Tarsy::spawn("w1", &["worker", "--name", "w1"], &env);
    worker.ready().await;
    let session = system.publish().await;
    let end = system.follow(session).await.finish().await;
    assert_eq!(end.event_type, EventType::SessionCompleted, "{end:?}");

    let requests = recorder.0.lock().unwrap().clone();
    // An answer without a call is asked for once more.
    let [request, again] = requests.as_slice() else {
        panic!("{} requests", requests.len())
    };
    assert_eq!(
        (&again.llm_config, again.max_output_tokens),
        (&request.llm_config, request.max_output_tokens)
    );
    let text = |text: &str| text.to_owned();
    let config = LlmConfig {
        provider: text("google"),
        model: text("gemini-3-flash-preview"),
        api_key_env: text("GEMINI_API_KEY"),
        credentials_env: text("GOOGLE_APPLICATION_CREDENTIALS"),
        base_url: text("http://127.0.0.1:9/proxy"),
        native_tools: [
            (text("google_search"), true),
            (text("code_execution"), true),
        ]
        .into(),
        project: text("my-project-1"),
        location: text("europe-west4"),
        backend: text("google-native"),
        options: [
            (text("temperature"), text("0.3")),
            (text("native_tools"), text("combine")),
        ]
        .into(),
    };
    assert_eq!(request.llm_config.as_ref(), Some(&config));
    let thinking = ThinkingConfig {
        level: text("low"),
        ..ThinkingConfig::default()
    };
    assert_eq!(
        (request.max_output_tokens, request.thinking.as_ref()),
        (8_000, Some(&thinking))
    );
    assert!(
        !request.tools.is_empty(),
        "the tools of the MCP server are combined with native tools"
    );
    service.abort();
}
