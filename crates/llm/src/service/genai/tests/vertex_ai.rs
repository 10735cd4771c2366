//! Models of Anthropic by Vertex AI, against local endpoints: for tokens, for metadata and for models.
//!
//! The endpoints behave as the documents of Google and Anthropic say. No test asks Google itself.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::conversation::{anthropic, continued, error, lines, provider_data, request};
use crate::proto::{GenerateRequest, GenerateResponse};
use crate::service::backend::{Backend, Backends};
use crate::service::call::Deadline;
use crate::service::genai::Genai;
use crate::service::provider::Access;
use crate::service::provider::key::Environment;
use crate::service::provider::tests::conversation::{PROMPT, TIMEOUTS, answer};
use crate::service::provider::tests::endpoint::{Endpoint, Reply};
use crate::service::provider::tests::log::Log;
use tarsy_config::url_pattern::UrlPattern;

const KEY: &str = include_str!("../../../../../../tests/fixtures/google/account.pem");
const MODEL: &str = "claude-sonnet-4-5@20250929";
const PATH: &str = "/v1/projects/my-project/locations/europe-west1/publishers/anthropic/models/";

fn token(name: &str, seconds: u32) -> Reply {
    Reply::stream(format!(
        r#"{{"access_token":"{name}-secret","expires_in":{seconds},"token_type":"Bearer"}}"#
    ))
}

/// A server of tokens, and Vertex AI.
struct Cloud {
    tokens: Endpoint,
    models: Endpoint,
}

impl Cloud {
    async fn start(tokens: Vec<Reply>, models: Vec<Reply>) -> Self {
        Self {
            tokens: Endpoint::start(tokens).await,
            models: Endpoint::start(models).await,
        }
    }

    /// A backend whose variable `ACCOUNT` has the key of a service account, and whose machine has an account, too.
    fn backend(&self) -> Backend {
        let account = json!({"type": "service_account", "client_email": "sre@p.test", "private_key": KEY,
            "token_uri": format!("http://{}/token", self.tokens.address), "quota_project_id": "payer"});
        let account = account.to_string();
        let metadata = self.tokens.address.to_string();
        let models = format!("http://{}", self.models.address);
        let access = Access::new(
            vec!["ACCOUNT".to_owned()],
            vec![permitted(self.tokens.address)],
            Environment::new(move |name: &str| match name {
                "ACCOUNT" => Some(account.clone()),
                "GCE_METADATA_HOST" => Some(metadata.clone()),
                "GOOGLE_VERTEX_BASE_URL" => Some(models.clone()),
                _ => None,
            }),
        );
        Backend::Genai(Genai::new(access, TIMEOUTS))
    }

    fn body(&self, at: usize) -> Value {
        serde_json::from_str(&self.models.bodies()[at]).unwrap()
    }

    /// The tokens of the requests for models.
    fn used(&self) -> Vec<String> {
        self.models
            .requests()
            .iter()
            .map(|request| {
                let headers = request.headers.to_lowercase();
                let value = headers.split("authorization: bearer ").nth(1).unwrap();
                value.split("-secret").next().unwrap().to_owned()
            })
            .collect()
    }
}

fn permitted(address: SocketAddr) -> UrlPattern {
    UrlPattern::parse(&format!("http://{address}")).unwrap()
}

/// A request by an account: that of the machine if `credentials_env` is empty.
fn by_account(credentials_env: &str) -> GenerateRequest {
    let mut request = anthropic();
    let config = request.llm_config.as_mut().unwrap();
    config.api_key_env.clear();
    config.model = MODEL.into();
    config.project = "my-project".into();
    config.location = "europe-west1".into();
    config.credentials_env = credentials_env.into();
    request
}

async fn ask(backend: &Backend, request: &GenerateRequest) -> Vec<GenerateResponse> {
    answer(backend, request, Deadline::default()).await
}

#[tokio::test]
async fn a_request_has_the_model_in_its_address_a_version_in_its_body_and_a_token() {
    let log = Log::default();
    let _guard = log.capture();
    let cloud = Cloud::start(
        vec![token("first", 3600)],
        vec![Reply::fixture("anthropic/answer.sse").in_pieces_of(7)],
    )
    .await;
    let backend = cloud.backend();
    let request = by_account("ACCOUNT");
    let answers = tokio::join!(ask(&backend, &request), ask(&backend, &request));
    let expected = [
        "text Healthy.",
        "stop|end_turn||msg_01|claude-sonnet-4-5-20250929",
        r#"data [{"type":"text","text":"Healthy."}]"#,
        "usage 56 3 59 0 11 0",
    ];
    for answer in [answers.0, answers.1] {
        assert_eq!(lines(&answer)[..4], expected);
    }
    assert_eq!(cloud.tokens.requests().len(), 1);
    let sent = cloud.models.requests().remove(0);
    assert_eq!(sent.target, format!("POST {PATH}{MODEL}:streamRawPredict"));
    let headers = sent.headers.to_lowercase();
    assert!(
        headers.contains("authorization: bearer first-secret\r\n")
            && headers.contains("x-goog-user-project: payer\r\n")
            && headers.contains("content-type: application/json\r\n"),
        "{headers}"
    );
    assert!(
        !headers.contains("x-api-key") && !headers.contains("anthropic-version"),
        "{headers}"
    );
    let tool = |name: &str| json!({ "name": name, "input_schema": { "type": "object", "properties": {} }, "description": "" });
    let cached = |text: &str| json!([{ "type": "text", "text": text, "cache_control": { "type": "ephemeral" } }]);
    let expected = json!({
        "anthropic_version": "vertex-2023-10-16",
        "stream": true,
        "system": cached("You are an SRE."),
        "tools": [tool("server__get"), tool("server__list")],
        "messages": [{ "role": "user", "content": cached(PROMPT) }],
        "max_tokens": 64_000,
        "thinking": { "type": "enabled", "budget_tokens": 32_000 },
    });
    assert_eq!(cloud.body(0), expected);
    let logged = log.text();
    for secret in ["first-secret", KEY.lines().nth(3).unwrap(), PROMPT] {
        assert!(!logged.contains(secret), "{logged}");
    }
}

#[tokio::test]
async fn the_body_is_that_of_anthropics_own_interface_but_for_model_and_version() {
    let cloud = Cloud::start(
        vec![token("first", 3600)],
        vec![Reply::fixture("anthropic/answer.sse")],
    )
    .await;
    ask(&cloud.backend(), &by_account("")).await;
    let own = Endpoint::start(vec![Reply::fixture("anthropic/answer.sse")]).await;
    super::conversation::ask(&own, &request("anthropic", MODEL)).await;
    let version = r#""anthropic_version":"vertex-2023-10-16","#;
    let model = format!(r#""model":"{MODEL}","#);
    assert_eq!(
        cloud.models.bodies()[0].replacen(version, "", 1),
        own.bodies()[0].replacen(&model, "", 1)
    );
}

#[tokio::test]
async fn signed_thoughts_go_back_to_the_model_of_another_date_at_vertex_ai() {
    let replies = ["anthropic/calls.sse", "anthropic/answer.sse"].map(Reply::fixture);
    let cloud = Cloud::start(vec![token("first", 3600)], replies.to_vec()).await;
    let backend = cloud.backend();
    let first = ask(&backend, &by_account("")).await;
    let data = provider_data(&first).unwrap();
    assert_eq!(
        (data.provider.as_str(), data.model.as_str()),
        ("anthropic", MODEL)
    );
    let mut next = continued(by_account(""), &first);
    next.llm_config.as_mut().unwrap().model = "claude-sonnet-4-5".into();
    assert_eq!(lines(&ask(&backend, &next).await)[0], "text Healthy.");
    let blocks: Value = serde_json::from_slice(&data.payload).unwrap();
    assert_eq!(cloud.body(1)["messages"][1]["content"], blocks);
    assert_eq!(blocks[0]["signature"], "c2lnLTE=");
}

#[tokio::test]
async fn a_token_is_renewed_before_it_expires_and_once_after_a_refusal() {
    let healthy = || Reply::fixture("anthropic/answer.sse");
    let refused = || {
        Reply::error(
            401,
            r#"[{"error":{"code":401,"message":"token old-secret expired","status":"UNAUTHENTICATED"}}]"#,
        )
    };
    let cloud = Cloud::start(
        vec![token("short", 0), token("old", 3600), token("new", 3600)],
        vec![healthy(), healthy(), refused(), healthy(), healthy()],
    )
    .await;
    let backend = cloud.backend();
    for _call in 0..4 {
        assert_eq!(
            lines(&ask(&backend, &by_account("")).await)[0],
            "text Healthy."
        );
    }
    assert_eq!(cloud.used(), ["short", "old", "old", "new", "new"]);
    assert_eq!(cloud.tokens.requests().len(), 3);
    assert!(
        cloud.tokens.requests()[0]
            .target
            .starts_with("GET /computeMetadata/v1/instance/service-accounts/default/token?scopes=")
    );
    let cloud = Cloud::start(vec![token("old", 3600)], vec![refused()]).await;
    let failed = error(&ask(&cloud.backend(), &by_account("")).await);
    assert_eq!(
        (failed.code.as_str(), cloud.used().len()),
        ("credentials", 2)
    );
    assert!(!failed.message.contains("old-secret"), "{}", failed.message);
}

#[tokio::test]
async fn failures_of_vertex_ai_have_the_codes_of_anthropic() {
    let of_google = |code: u16, status: &str| {
        Reply::error(
            code,
            &format!(r#"[{{"error":{{"code":{code},"message":"m","status":"{status}"}}}}]"#),
        )
    };
    let of_anthropic = |code: u16, kind: &str| {
        Reply::error(
            code,
            &format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"m"}}}}"#),
        )
    };
    for (reply, code, requests) in [
        (of_google(403, "PERMISSION_DENIED"), "credentials", 1),
        (of_google(404, "NOT_FOUND"), "model_not_found", 1),
        (
            of_anthropic(400, "invalid_request_error"),
            "invalid_request",
            1,
        ),
    ] {
        let cloud = Cloud::start(vec![token("first", 3600)], vec![reply]).await;
        let failed = error(&ask(&cloud.backend(), &by_account("")).await);
        assert_eq!(
            (failed.code.as_str(), failed.retryable),
            (code, false),
            "{}",
            failed.message
        );
        assert_eq!(cloud.used().len(), requests, "{code}");
    }
    for (reply, code) in [
        (of_google(429, "RESOURCE_EXHAUSTED"), "rate_limited"),
        (of_google(503, "UNAVAILABLE"), "unavailable"),
        (of_anthropic(529, "overloaded_error"), "unavailable"),
    ] {
        let reply = reply.with_header("retry-after: 0");
        let cloud = Cloud::start(
            vec![token("first", 3600)],
            vec![reply, Reply::fixture("anthropic/answer.sse")],
        )
        .await;
        let answer = lines(&ask(&cloud.backend(), &by_account("")).await);
        assert_eq!(
            answer[..2],
            [format!("retry 1 {code}"), "text Healthy.".to_owned()]
        );
        assert_eq!(cloud.used(), ["first", "first"]);
    }
}

#[tokio::test]
async fn a_name_of_a_model_cannot_change_the_address() {
    let cloud = Cloud::start(vec![token("first", 3600)], Vec::new()).await;
    let Backend::Genai(backend) = cloud.backend() else {
        panic!("another backend")
    };
    let service = Backends::new([Backend::Genai(backend)]);
    for (model, project, expected) in [
        (MODEL, "my-project", ""),
        (
            "anthropic/claude-opus-4-6",
            "my-project",
            "'anthropic/claude-opus-4-6' is no name",
        ),
        (
            "x:rawPredict",
            "my-project",
            "'x:rawPredict' is no name of a model of Anthropic",
        ),
        (MODEL, "", "Vertex AI needs a project"),
    ] {
        let mut request = by_account("ACCOUNT");
        let config = request.llm_config.as_mut().unwrap();
        config.backend = "genai".into();
        config.model = model.into();
        config.project = project.into();
        let check = service.check(config).await;
        let message = check.error.map(|error| error.message).unwrap_or_default();
        assert!(
            message.starts_with(expected) && message.is_empty() == expected.is_empty(),
            "{message}"
        );
        if expected.is_empty() {
            assert_eq!(check.credentials, "a key of a service account");
        } else {
            let failed = error(&ask(&cloud.backend(), &request).await);
            assert_eq!(
                (failed.code.as_str(), failed.message),
                ("invalid_request", message)
            );
        }
    }
    assert_eq!(
        (cloud.tokens.requests(), cloud.models.requests()),
        (vec![], vec![])
    );
}
