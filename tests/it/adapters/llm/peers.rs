//! Older and newer clients, unknown backends and idle connections.

use prost::Message as _;
use tarsy_llm::proto::generate_response::Content;
use tarsy_llm::proto::llm_service_client::LlmServiceClient;
use tarsy_llm::proto::{
    ConversationMessage, GenerateRequest, GenerateResponse, LlmConfig, TextDelta,
};
use tokio::net::TcpStream;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

use crate::support::wait::eventually;

use super::harness::{Server, ask, failed, request, script, within_timeout};

/// A request of a newer version with one more field.
#[derive(Clone, PartialEq, prost::Message)]
struct NewerRequest {
    #[prost(message, repeated, tag = "2")]
    messages: Vec<ConversationMessage>,
    #[prost(message, optional, tag = "3")]
    llm_config: Option<LlmConfig>,
    #[prost(string, tag = "199")]
    added: String,
}

/// A response of an older version, which has only text.
#[derive(Clone, PartialEq, prost::Message)]
struct OlderResponse {
    #[prost(message, optional, tag = "1")]
    text: Option<TextDelta>,
    #[prost(bool, tag = "10")]
    is_final: bool,
}

fn channel(server: &Server) -> Channel {
    Endpoint::from_shared(format!("http://{}", server.address))
        .unwrap()
        .connect_lazy()
}

fn config() -> LlmConfig {
    LlmConfig {
        backend: "scripted".into(),
        options: [("transcript".to_owned(), "test".to_owned())].into(),
        ..LlmConfig::default()
    }
}

#[tokio::test]
async fn a_field_that_the_service_does_not_know_is_ignored() {
    let server = Server::start(script(
        "  - {chunks: [{thinking: hm}, {text: fine}], usage: {input: 1}}\n",
    ));
    let mut grpc = tonic::client::Grpc::new(channel(&server));
    grpc.ready().await.unwrap();
    let newer = NewerRequest {
        messages: Vec::new(),
        llm_config: Some(config()),
        added: "tomorrow".into(),
    };
    let path = PathAndQuery::from_static("/llm.v1.LLMService/Generate");
    let codec = ProstCodec::<NewerRequest, OlderResponse>::default();
    let mut stream = within_timeout(grpc.server_streaming(tonic::Request::new(newer), path, codec))
        .await
        .unwrap()
        .into_inner();
    let mut chunks = Vec::new();
    while let Some(chunk) = within_timeout(stream.message()).await.unwrap() {
        chunks.push((chunk.text.map(|text| text.content), chunk.is_final));
    }
    assert_eq!(
        chunks,
        [
            (None, false),
            (Some("fine".to_owned()), false),
            (None, false),
            (None, true)
        ]
    );
}

#[tokio::test]
async fn added_messages_are_sent_only_to_a_client_that_accepts_them() {
    let options = {
        let mut options =
            script("  - {chunks: [{text: fine}, {call: {tool: a.b}}], usage: {input: 1}}\n");
        options.transcripts[0].provider_state = true;
        options
    };
    let server = Server::start(options);
    let tool = tarsy_llm::proto::ToolDefinition {
        name: "a.b".into(),
        ..Default::default()
    };
    let mut streams = Vec::new();
    for accept in [
        vec![],
        vec!["finish".to_owned(), "provider_data".to_owned()],
    ] {
        let request = GenerateRequest {
            llm_config: Some(config()),
            tools: vec![tool.clone()],
            accept,
            ..Default::default()
        };
        let mut client = LlmServiceClient::new(channel(&server));
        let mut stream = within_timeout(client.generate(request))
            .await
            .unwrap()
            .into_inner();
        let mut kinds = Vec::new();
        while let Some(chunk) = within_timeout(stream.message()).await.unwrap() {
            kinds.push((kind(&chunk), chunk.is_final));
        }
        streams.push(kinds);
    }
    let old = [
        ("text", false),
        ("tool_call", false),
        ("usage", false),
        ("", true),
    ];
    let new = [
        ("text", false),
        ("tool_call", false),
        ("finish", false),
        ("provider_data", false),
        ("usage", false),
        ("", true),
    ];
    assert_eq!(streams, [old.to_vec(), new.to_vec()]);
}

fn kind(chunk: &GenerateResponse) -> &'static str {
    match &chunk.content {
        Some(Content::Text(_)) => "text",
        Some(Content::Thinking(_)) => "thinking",
        Some(Content::ToolCall(_)) => "tool_call",
        Some(Content::Usage(_)) => "usage",
        Some(Content::Error(_)) => "error",
        Some(Content::CodeExecution(_)) => "code_execution",
        Some(Content::Grounding(_)) => "grounding",
        Some(Content::Finish(_)) => "finish",
        Some(Content::ProviderData(_)) => "provider_data",
        Some(Content::Retry(_)) => "retry",
        None => "",
    }
}

#[tokio::test]
async fn an_unknown_backend_is_refused_with_the_error_of_the_existing_service() {
    let server = Server::start(script("  - {chunks: [{text: fine}]}\n"));
    for (backend, named) in [
        ("bedrock", "bedrock"),
        ("", "google-native"),
        ("google-native", "google-native"),
    ] {
        let mut asked = request("test", "x");
        asked.provider.backend = backend.into();
        let expected =
            format!("No provider registered for backend '{named}'. Available backends: scripted");
        assert_eq!(
            failed(ask(&server.client(), &asked).await),
            ("invalid_backend".into(), expected, false)
        );
    }
}

#[tokio::test]
async fn an_error_is_one_message_that_is_final() {
    let server = Server::start(script(
        "  - {chunks: [{text: x}], fail: {code: credentials, message: no key}}\n",
    ));
    let request = GenerateRequest {
        llm_config: Some(config()),
        ..Default::default()
    };
    let mut stream = within_timeout(LlmServiceClient::new(channel(&server)).generate(request))
        .await
        .unwrap()
        .into_inner();
    let chunk = within_timeout(stream.message()).await.unwrap().unwrap();
    let Some(Content::Error(error)) = &chunk.content else {
        panic!("{chunk:?}")
    };
    assert_eq!(
        (error.code.as_str(), error.message.as_str(), chunk.is_final),
        ("credentials", "no key", true)
    );
    assert_eq!(within_timeout(stream.message()).await.unwrap(), None);
    assert_eq!(
        GenerateResponse::decode(chunk.encode_to_vec().as_slice()).unwrap(),
        chunk
    );
}

/// More connections than one address may have.
const CROWD: usize = 300;

#[tokio::test]
async fn a_crowd_of_idle_connections_is_bounded_and_does_not_block_workers() {
    let server = Server::start(script("  - {chunks: [{text: fine}]}\n"));
    let worker = server.client();
    ask(&worker, &request("test", "first")).await.unwrap();
    let mut idle = Vec::new();
    for _ in 0..CROWD {
        idle.push(TcpStream::connect(server.address).await.unwrap());
    }
    let is_closed = |stream: &TcpStream| match stream.try_read(&mut [0; 1024]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    };
    let closed = async || idle.iter().filter(|stream| is_closed(stream)).count() >= CROWD - 256;
    eventually("the connections over the limit are closed", closed).await;
    ask(&worker, &request("test", "second"))
        .await
        .expect("the connection of a worker was closed");
    let another = async || {
        ask(&server.client(), &request("test", "third"))
            .await
            .is_ok()
    };
    eventually(
        "another worker gets the place of an idle connection",
        another,
    )
    .await;
}
