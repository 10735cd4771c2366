//! Vertex AI against local endpoints: for tokens, for metadata and for models.

use std::net::SocketAddr;

use data_encoding::BASE64URL_NOPAD;
use ring::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use serde_json::{Value, json};
use url::Url;

use super::{Place, Publisher, endpoint, model_url, regional};
use crate::proto::{ErrorInfo, GenerateRequest, LlmConfig};
use crate::service::backend::Backend;
use crate::service::call::Deadline;
use crate::service::google::Google;
use crate::service::provider::Access;
use crate::service::provider::key::Environment;
use crate::service::provider::tests::conversation::{TIMEOUTS, answer, error, lines, message};
use crate::service::provider::tests::endpoint::{Endpoint, Reply};
use crate::service::provider::tests::log::Log;
use tarsy_config::url_pattern::UrlPattern;

const KEY: &str = include_str!("../../../../../tests/fixtures/google/account.pem");
const TOKEN: &str = r#"{"access_token":"token-1-secret","expires_in":3600,"token_type":"Bearer"}"#;

fn healthy() -> Reply {
    Reply::fixture("gemini/answer.sse")
}

fn unauthenticated() -> Reply {
    Reply::error(
        401,
        r#"{"error":{"code":401,"message":"expired","status":"UNAUTHENTICATED"}}"#,
    )
}

fn account(token_uri: &str) -> String {
    json!({"type": "service_account", "client_email": "sre@p.test", "private_key": KEY, "token_uri": token_uri,
        "quota_project_id": "payer"})
    .to_string()
}

/// A backend with these variables; `ACCOUNT` may be named by requests, and `permitted` be an address for tokens.
fn backend(variables: &[(&str, String)], permitted: Option<SocketAddr>) -> Backend {
    let variables: Vec<(String, String)> = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    let urls = permitted.map(|address| UrlPattern::parse(&format!("http://{address}")).unwrap());
    let access = Access::new(
        vec!["ACCOUNT".to_owned()],
        urls.into_iter().collect(),
        Environment::new(move |name: &str| {
            variables
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.clone())
        }),
    );
    Backend::Google(Google::new(access, TIMEOUTS))
}

fn request(credentials_env: &str) -> GenerateRequest {
    GenerateRequest {
        messages: vec![message("user", "why?")],
        llm_config: Some(LlmConfig {
            provider: "google".into(),
            model: "gemini-3-flash-preview".into(),
            project: "my-project".into(),
            location: "europe-west4".into(),
            credentials_env: credentials_env.into(),
            ..LlmConfig::default()
        }),
        accept: vec!["codes.v2".to_owned()],
        ..GenerateRequest::default()
    }
}

async fn ask(backend: &Backend, credentials_env: &str) -> Vec<String> {
    lines(&answer(backend, &request(credentials_env), Deadline::default()).await)
}

async fn fault(backend: &Backend, credentials_env: &str) -> ErrorInfo {
    error(&answer(backend, &request(credentials_env), Deadline::default()).await)
}

/// Bytes in the alphabet of Base64 for addresses, without padding.
fn decoded(text: &str) -> Vec<u8> {
    BASE64URL_NOPAD.decode(text.as_bytes()).unwrap()
}

/// The claims of an assertion whose signature fits the key.
fn claims(body: &str) -> Value {
    let grant = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=";
    let assertion = body.strip_prefix(grant).unwrap();
    let (signed, signature) = assertion.rsplit_once('.').unwrap();
    let pem: String = KEY.lines().filter(|line| !line.starts_with('-')).collect();
    let der = decoded(&pem.replace('+', "-").replace('/', "_").replace('=', ""));
    let pair = RsaKeyPair::from_pkcs8(&der).unwrap();
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key());
    public
        .verify(signed.as_bytes(), &decoded(signature))
        .unwrap();
    let (header, claims) = signed.split_once('.').unwrap();
    let header: Value = serde_json::from_slice(&decoded(header)).unwrap();
    assert_eq!(header["alg"], "RS256");
    serde_json::from_slice(&decoded(claims)).unwrap()
}

#[tokio::test]
async fn calls_share_a_token_for_which_a_service_account_has_signed() {
    let log = Log::default();
    let _guard = log.capture();
    let tokens = Endpoint::start(vec![Reply::stream(TOKEN)]).await;
    let models = Endpoint::start(vec![healthy()]).await;
    let token_uri = format!("http://{}/token", tokens.address);
    let base = format!("http://{}", models.address);
    let backend = backend(
        &[
            ("ACCOUNT", account(&token_uri)),
            ("GOOGLE_VERTEX_BASE_URL", base),
        ],
        Some(tokens.address),
    );
    let answers = tokio::join!(
        ask(&backend, "ACCOUNT"),
        ask(&backend, "ACCOUNT"),
        ask(&backend, "ACCOUNT")
    );
    for answer in [answers.0, answers.1, answers.2] {
        assert_eq!(answer[0], "text Healthy.");
    }
    assert_eq!((tokens.requests().len(), models.requests().len()), (1, 3));
    let claims = claims(&tokens.bodies()[0]);
    assert_eq!(
        (&claims["iss"], &claims["aud"]),
        (&json!("sre@p.test"), &json!(token_uri))
    );
    assert_eq!(
        claims["scope"],
        "https://www.googleapis.com/auth/cloud-platform"
    );
    assert!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap() <= 3600);
    let sent = &models.requests()[0];
    let path = "/v1/projects/my-project/locations/europe-west4/publishers/google/models/gemini-3-flash-preview";
    assert_eq!(
        sent.target,
        format!("POST {path}:streamGenerateContent?alt=sse")
    );
    assert!(
        sent.headers
            .contains("authorization: Bearer token-1-secret\r\n"),
        "{}",
        sent.headers
    );
    assert!(
        sent.headers.contains("x-goog-user-project: payer\r\n")
            && !sent.headers.contains("x-goog-api-key")
    );
    let logged = log.text();
    let assertion = tokens.bodies()[0].get(100..160).unwrap().to_owned();
    for secret in ["token-1-secret", KEY.lines().nth(3).unwrap(), &assertion] {
        assert!(!logged.is_empty() && !logged.contains(secret), "{logged}");
    }
}

#[tokio::test]
async fn the_metadata_server_is_asked_again_when_its_token_expires() {
    let short = TOKEN.replace("3600", "0");
    let metadata = Endpoint::start(vec![Reply::stream(short), Reply::stream(TOKEN)]).await;
    let models = Endpoint::start(vec![healthy()]).await;
    let variables = [
        ("GCE_METADATA_HOST", metadata.address.to_string()),
        (
            "GOOGLE_VERTEX_BASE_URL",
            format!("http://{}", models.address),
        ),
    ];
    let backend = backend(&variables, None);
    for _call in 0..4 {
        assert_eq!(ask(&backend, "").await[0], "text Healthy.");
    }
    let requests = metadata.requests();
    assert_eq!((requests.len(), models.requests().len()), (2, 4));
    assert!(
        requests[0]
            .target
            .starts_with("GET /computeMetadata/v1/instance/service-accounts/default/token?scopes=")
    );
    assert!(
        requests[0]
            .headers
            .to_lowercase()
            .contains("metadata-flavor: google"),
        "{}",
        requests[0].headers
    );
}

#[tokio::test]
async fn a_refused_token_is_renewed_once() {
    for (replies, expected) in [
        (vec![unauthenticated(), healthy()], "text Healthy."),
        (
            vec![unauthenticated()],
            "error credentials Generation failed: 401 UNAUTHENTICATED. expired",
        ),
    ] {
        let metadata = Endpoint::start(vec![Reply::stream(TOKEN)]).await;
        let models = Endpoint::start(replies).await;
        let variables = [
            ("GCE_METADATA_HOST", metadata.address.to_string()),
            (
                "GOOGLE_VERTEX_BASE_URL",
                format!("http://{}", models.address),
            ),
        ];
        assert_eq!(ask(&backend(&variables, None), "").await[0], expected);
        assert_eq!((metadata.requests().len(), models.requests().len()), (2, 2));
    }
    let models = Endpoint::start(vec![unauthenticated()]).await;
    let base = format!("http://{}", models.address);
    let fixed = backend(
        &[
            ("ACCOUNT", "plain-token".to_owned()),
            ("GOOGLE_VERTEX_BASE_URL", base),
        ],
        None,
    );
    assert_eq!(fault(&fixed, "ACCOUNT").await.code, "credentials");
    assert_eq!(models.requests().len(), 1);
    assert!(
        models.requests()[0]
            .headers
            .contains("authorization: Bearer plain-token\r\n")
    );
}

#[tokio::test]
async fn a_refused_account_is_no_outage_and_an_outage_is_tried_again() {
    let refused = r#"{"error":"invalid_grant","error_description":"assertion sre@p.test"}"#;
    for (status, body, code, requests) in [
        (400, refused, "credentials", 1),
        (503, "{}", "unavailable", 3),
    ] {
        let tokens = Endpoint::start(vec![Reply::error(status, body)]).await;
        let account = account(&format!("http://{}/token", tokens.address));
        let backend = backend(&[("ACCOUNT", account)], Some(tokens.address));
        let found = fault(&backend, "ACCOUNT").await;
        assert_eq!(
            (found.code.as_str(), tokens.requests().len()),
            (code, requests),
            "{}",
            found.message
        );
        assert_eq!(found.retryable, status == 503);
        let has_secret = ["sre@p.test", "PRIVATE", "assertion"]
            .iter()
            .any(|text| found.message.contains(text));
        assert!(
            !has_secret && (status == 503 || found.message.contains("400 invalid_grant")),
            "{}",
            found.message
        );
    }
}

#[tokio::test]
async fn no_assertion_and_no_variable_goes_to_an_address_that_is_not_permitted() {
    let stranger = Endpoint::start(vec![Reply::stream(TOKEN)]).await;
    let foreign = account(&format!("http://{}/token", stranger.address));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &foreign).unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    for (value, name, expected) in [
        (
            foreign.clone(),
            "ACCOUNT",
            "The token_uri of the service account is no address of Google",
        ),
        (
            path,
            "ACCOUNT",
            "The token_uri of the service account is no address of Google",
        ),
        (
            foreign,
            "GOOGLE_APPLICATION_CREDENTIALS",
            "Environment variable 'GOOGLE_APPLICATION_CREDENTIALS' is not permitted",
        ),
        (
            "/nowhere".to_owned(),
            "ACCOUNT",
            "The file of credentials cannot be read",
        ),
        (
            r#"{"type":"external_account"}"#.to_owned(),
            "ACCOUNT",
            "The credentials are no key of a service account",
        ),
        ("{".to_owned(), "ACCOUNT", "The credentials are no JSON"),
    ] {
        let found = fault(&backend(&[(name, value)], None), name).await;
        assert_eq!(found.code, "credentials");
        assert!(found.message.starts_with(expected), "{}", found.message);
    }
    let mut request = request("ACCOUNT");
    request.llm_config.as_mut().unwrap().base_url = format!("http://{}", stranger.address);
    let fixed = backend(&[("ACCOUNT", "plain-token".to_owned())], None);
    assert_eq!(
        error(&answer(&fixed, &request, Deadline::default()).await).code,
        "invalid_request"
    );
    assert_eq!(stranger.requests(), vec![]);
}

#[test]
fn the_address_has_the_location_before_the_host_and_in_the_path() {
    let url = |base: &str, location: &str| {
        let place = Place {
            project: "p",
            location,
            publisher: Publisher::Google,
        };
        model_url(
            regional(Url::parse(base).unwrap(), location).unwrap(),
            place,
        )
        .to_string()
    };
    let tail = |location: &str| format!("projects/p/locations/{location}/publishers/google");
    let default = "https://aiplatform.googleapis.com";
    assert_eq!(
        url(default, "global"),
        format!("{default}/v1/{}", tail("global"))
    );
    let regional = format!(
        "https://us-east5-aiplatform.googleapis.com/v1/{}",
        tail("us-east5")
    );
    assert_eq!(url(default, "us-east5"), regional);
    for area in ["eu", "us"] {
        assert_eq!(
            url(default, area),
            format!(
                "https://aiplatform.{area}.rep.googleapis.com/v1/{}",
                tail(area)
            )
        );
    }
    assert_eq!(
        url("http://h:1/x/v1beta1/", "us-east5"),
        format!("http://h:1/x/v1beta1/{}", tail("us-east5"))
    );
}

#[tokio::test]
async fn a_project_or_location_cannot_change_the_address() {
    let access = Access::new(vec![], vec![], Environment::new(|_name| None));
    for (project, location) in [
        ("", "global"),
        ("a/b", ""),
        ("p", "evil.test/"),
        ("p", "evil.test:x"),
        ("p", "evil.test"),
        ("p", "EU"),
        ("p?x", "global"),
        ("p", "a@b"),
    ] {
        let config = LlmConfig {
            project: project.into(),
            location: location.into(),
            ..LlmConfig::default()
        };
        let found = endpoint(
            &access,
            &super::Tokens::default(),
            &config,
            Publisher::Google,
        )
        .await
        .unwrap_err();
        assert!(
            found.message.starts_with("Vertex AI needs a "),
            "{project} {location}: {}",
            found.message
        );
    }
}
