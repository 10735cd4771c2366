//! The client of a service: many streams over a few connections.

use std::time::Duration;

use tarsy_llm::proto::generate_response::Content;
use tarsy_llm::proto::llm_service_client::LlmServiceClient;
use tarsy_llm::proto::{
    ACCEPT_CODES, ACCEPT_FINISH, ACCEPT_PROVIDER_DATA, ConversationMessage, GenerateRequest,
    GenerateResponse, LlmConfig,
};
use tonic::Streaming;
use tonic::transport::{Channel, Endpoint};

use crate::clock;
use crate::script::Script;

/// Connects to a service.
pub(crate) async fn connect(address: &str) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
    endpoint.connect().await.expect("a connection")
}

/// An answer that arrives.
pub(crate) struct Answer(Streaming<GenerateResponse>);

impl Answer {
    /// Sends a request; returns when the service has accepted it.
    pub(crate) async fn begin(channel: &Channel, script: Script) -> Self {
        let message = ConversationMessage {
            role: "user".into(),
            content: script.prompt(),
            ..ConversationMessage::default()
        };
        let config = LlmConfig {
            backend: "google-native".into(),
            provider: "google".into(),
            model: "gemini-2.5-flash".into(),
            api_key_env: "GEMINI_API_KEY".into(),
            ..LlmConfig::default()
        };
        let request = GenerateRequest {
            messages: vec![message],
            llm_config: Some(config),
            accept: [ACCEPT_FINISH, ACCEPT_PROVIDER_DATA, ACCEPT_CODES]
                .map(str::to_owned)
                .to_vec(),
            ..GenerateRequest::default()
        };
        let response = LlmServiceClient::new(channel.clone())
            .generate(request)
            .await
            .expect("an answer");
        Self(response.into_inner())
    }

    /// The time that the next chunk of text needed from the provider to here; `None` at the end of the answer.
    pub(crate) async fn chunk(&mut self) -> Option<Duration> {
        loop {
            let response = self.0.message().await.expect("a whole answer")?;
            match response.content {
                Some(Content::Text(text)) if text.content.len() > 1 => {
                    let written = text.content.trim().parse().expect("a time");
                    return Some(clock().saturating_sub(Duration::from_nanos(written)));
                }
                Some(Content::Error(error)) => panic!("the service reports {error:?}"),
                _ if response.is_final => return None,
                _ => {}
            }
        }
    }
}
