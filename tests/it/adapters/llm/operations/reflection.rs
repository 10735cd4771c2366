//! Reflection, read as its clients do.

use tarsy_http::outgoing::token::TokenSource;
use tarsy_llm::service;
use tarsy_llm::service::security::Security;
use tarsy_mask::Mask;
use tokio_stream::StreamExt as _;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use super::super::harness::{Server, within_timeout};
use super::start;

async fn reflect(
    server: &Server,
    ask: MessageRequest,
    token: Option<&str>,
) -> Result<MessageResponse, Status> {
    let channel = Channel::from_shared(format!("http://{}", server.address))
        .unwrap()
        .connect_lazy();
    let asked = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(ask),
    };
    let mut request = Request::new(tokio_stream::once(asked));
    if let Some(token) = token {
        request
            .metadata_mut()
            .insert("authorization", format!("Bearer {token}").parse().unwrap());
    }
    let mut client = ServerReflectionClient::new(channel);
    let mut answers = within_timeout(client.server_reflection_info(request))
        .await?
        .into_inner();
    Ok(within_timeout(answers.next())
        .await
        .unwrap()?
        .message_response
        .unwrap())
}

#[tokio::test]
async fn reflection_lists_the_services_and_describes_the_protocol() {
    let server = start(service::Options::default());
    let MessageResponse::ListServicesResponse(list) =
        reflect(&server, MessageRequest::ListServices(String::new()), None)
            .await
            .unwrap()
    else {
        panic!("no list")
    };
    let mut names: Vec<_> = list
        .service
        .into_iter()
        .map(|service| service.name)
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "grpc.health.v1.Health",
            "grpc.reflection.v1.ServerReflection",
            "llm.v1.LLMService"
        ]
    );
    let symbol = MessageRequest::FileContainingSymbol("llm.v1.LLMService".to_owned());
    let MessageResponse::FileDescriptorResponse(files) =
        reflect(&server, symbol, None).await.unwrap()
    else {
        panic!("no description")
    };
    let bytes = files.file_descriptor_proto.concat();
    let has = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    assert!(has(b"GenerateRequest") && has(b"provider_data"));
}

#[tokio::test]
async fn reflection_needs_the_token_of_the_service() {
    let token = Some(TokenSource::Value("right-token".to_owned()));
    let security = Security::load(None, token, &Mask::default()).unwrap();
    let server = start(service::Options {
        security,
        ..service::Options::default()
    });
    let list = || MessageRequest::ListServices(String::new());
    assert!(reflect(&server, list(), Some("right-token")).await.is_ok());
    for token in [None, Some("wrong-token")] {
        assert_eq!(
            reflect(&server, list(), token).await.unwrap_err().code(),
            Code::Unauthenticated
        );
    }
}
