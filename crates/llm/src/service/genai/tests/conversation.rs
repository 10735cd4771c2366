//! Requests to the backend.

use crate::proto::{
    ACCEPT_CODES, ACCEPT_FINISH, ACCEPT_PROVIDER_DATA, ACCEPT_RETRY, GenerateRequest,
    GenerateResponse, LlmConfig,
};
use crate::service::backend::Backend;
use crate::service::call::Deadline;
use crate::service::genai::Genai;
use crate::service::provider::Access;
use crate::service::provider::key::Environment;
pub(super) use crate::service::provider::tests::conversation::{
    KEY, PROMPT, continued, error, lines, provider_data,
};
use crate::service::provider::tests::conversation::{TIMEOUTS, answer, message, tool};
use crate::service::provider::tests::endpoint::Endpoint;
use tarsy_config::url_pattern::UrlPattern;

/// A request of a client that accepts everything.
pub(super) fn request(provider: &str, model: &str) -> GenerateRequest {
    GenerateRequest {
        messages: vec![
            message("system", "You are an SRE."),
            message("user", PROMPT),
        ],
        llm_config: Some(LlmConfig {
            provider: provider.into(),
            model: model.into(),
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
        execution_id: "execution-1".into(),
        ..GenerateRequest::default()
    }
}

pub(super) fn anthropic() -> GenerateRequest {
    request("anthropic", "claude-sonnet-4-5")
}

pub(super) fn openai() -> GenerateRequest {
    request("openai", "gpt-5.1")
}

/// The whole answer of a backend that sends the requests of every provider to this endpoint.
pub(super) async fn ask(endpoint: &Endpoint, request: &GenerateRequest) -> Vec<GenerateResponse> {
    ask_until(endpoint, request, Deadline::default()).await
}

/// The whole answer for a client with a deadline.
pub(super) async fn ask_until(
    endpoint: &Endpoint,
    request: &GenerateRequest,
    deadline: Deadline,
) -> Vec<GenerateResponse> {
    let address = endpoint.address;
    let permitted = UrlPattern::parse(&format!("http://{address}")).unwrap();
    let access = Access::new(
        vec!["TEST_KEY".to_owned()],
        vec![permitted],
        Environment::new(move |name: &str| match name {
            "TEST_KEY" => Some(KEY.to_owned()),
            name if name.ends_with("_BASE_URL")
                || name.ends_with("_API_BASE")
                || name.ends_with("_HOST") =>
            {
                Some(format!("http://{address}"))
            }
            _ => None,
        }),
    );
    answer(
        &Backend::Genai(Genai::new(access, TIMEOUTS)),
        request,
        deadline,
    )
    .await
}
