//! Requests to the backend.

use std::net::SocketAddr;

use crate::proto::{
    ACCEPT_CODES, ACCEPT_FINISH, ACCEPT_PROVIDER_DATA, ACCEPT_RETRY, GenerateRequest,
    GenerateResponse, LlmConfig,
};
use crate::service::backend::Backend;
use crate::service::call::Deadline;
use crate::service::google::Google;
use crate::service::provider::Access;
use crate::service::provider::key::Environment;
pub(super) use crate::service::provider::tests::conversation::{
    KEY, PROMPT, continued, error, lines, provider_data, without_id,
};
use crate::service::provider::tests::conversation::{TIMEOUTS, answer, message, tool};
use crate::service::provider::tests::endpoint::Endpoint;

/// A request of a client that accepts everything.
pub(super) fn request() -> GenerateRequest {
    GenerateRequest {
        messages: vec![
            message("system", "You are an SRE."),
            message("user", PROMPT),
        ],
        llm_config: Some(LlmConfig {
            provider: "google".into(),
            model: "gemini-3-flash-preview".into(),
            api_key_env: "TEST_KEY".into(),
            ..LlmConfig::default()
        }),
        tools: vec![tool("server.get"), tool("server.list")],
        accept: [
            ACCEPT_CODES,
            ACCEPT_FINISH,
            ACCEPT_PROVIDER_DATA,
            ACCEPT_RETRY,
        ]
        .map(str::to_owned)
        .to_vec(),
        ..GenerateRequest::default()
    }
}

/// A backend that sends its requests to this address.
pub(super) fn backend(address: SocketAddr) -> Google {
    let access = Access::new(
        vec!["TEST_KEY".to_owned()],
        Vec::new(),
        Environment::new(move |name: &str| match name {
            "TEST_KEY" => Some(KEY.to_owned()),
            "GOOGLE_GEMINI_BASE_URL" => Some(format!("http://{address}")),
            _ => None,
        }),
    );
    Google::new(access, TIMEOUTS)
}

/// The whole answer.
pub(super) async fn ask(endpoint: &Endpoint, request: &GenerateRequest) -> Vec<GenerateResponse> {
    ask_until(endpoint, request, Deadline::default()).await
}

/// The whole answer for a client with a deadline.
pub(super) async fn ask_until(
    endpoint: &Endpoint,
    request: &GenerateRequest,
    deadline: Deadline,
) -> Vec<GenerateResponse> {
    answer(
        &Backend::Google(backend(endpoint.address)),
        request,
        deadline,
    )
    .await
}
