//! Gets a new token: from the metadata server, or for an assertion that the key of a service account has signed.
//!
//! The crate `tame-oauth` builds the requests; this service's client sends them, so its proxies and certificate
//! authorities count. The metadata server is asked without a proxy.

use std::time::Duration;

use reqwest::{Client, StatusCode};
use serde::Deserialize;
use tame_oauth::gcp::{ServiceAccountInfo, ServiceAccountProvider, TokenOrRequest, TokenProvider};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use url::Url;

use super::account::Source;
use crate::service::call::Deadline;
use crate::service::provider::key::ApiKey;
use crate::service::provider::timeouts::{Timeout, within};
use crate::service::provider::{ErrorCode, ProviderError, http};

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const TOKEN_PATH: &str = "computeMetadata/v1/instance/service-accounts/default/token";
/// The time limit for a request and its response.
const LIMIT: Duration = Duration::from_secs(10);
/// A metadata server answers from the same network.
const REACH_LIMIT: Duration = Duration::from_millis(500);
const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// A new token and how long it is valid.
#[derive(Clone, Debug)]
pub(super) struct FreshToken {
    pub(super) token: ApiKey,
    pub(super) lifetime: Duration,
}

#[derive(Deserialize)]
struct TokenResponse {
    access_token: String,
    expires_in: u64,
}

/// # Errors
/// `credentials` when the account is refused or its key cannot sign; `unavailable`, and retryable, when the other side
/// cannot be reached or is overloaded.
pub(super) async fn fetch(
    source: &Source,
    deadline: Deadline,
) -> Result<FreshToken, ProviderError> {
    let (client, request) = match source {
        Source::Token(token) => {
            return Ok(FreshToken {
                token: token.clone(),
                lifetime: Duration::ZERO,
            });
        }
        Source::Service(info) => {
            let client = http::client()?;
            let request = assertion(&client, info)?;
            (client, request)
        }
        Source::Machine { host } => {
            let client = http::direct_client()?;
            let request = client
                .get(format!("http://{host}/{TOKEN_PATH}?scopes={SCOPE}"))
                .header("Metadata-Flavor", "Google")
                .build()
                .map_err(|_error| {
                    ProviderError::credentials("The host of the metadata server is no host")
                })?;
            (client, request)
        }
    };
    let silence = Timeout::since(Instant::now(), LIMIT);
    let exchanged = within(deadline, silence, exchange(&client, request)).await?;
    let (status, body) = exchanged.map_err(|error| ProviderError {
        message: format!("No token for Vertex AI: {}{}", error.message, hint(source)),
        ..error
    })?;
    if status != StatusCode::OK {
        return Err(refusal(status, &body, source));
    }
    let answer: TokenResponse = serde_json::from_slice(&body).map_err(|_error| {
        ProviderError::transient(
            ErrorCode::Unavailable,
            "The answer has no token for Vertex AI",
        )
    })?;
    Ok(FreshToken {
        token: ApiKey::new(answer.access_token),
        lifetime: Duration::from_secs(answer.expires_in),
    })
}

/// Sends a request for a token. Returns the status and the beginning of the body.
async fn exchange(
    client: &Client,
    request: reqwest::Request,
) -> Result<(StatusCode, Vec<u8>), ProviderError> {
    let mut response = client.execute(request).await.map_err(http::unavailable)?;
    let mut body = Vec::new();
    while body.len() <= MAX_ANSWER_BYTES
        && let Some(piece) = response.chunk().await.map_err(http::unavailable)?
    {
        body.extend_from_slice(&piece);
    }
    Ok((response.status(), body))
}

/// Connects to a metadata server without a request.
///
/// # Errors
/// `credentials` when it does not answer at once, as on every machine outside of Google Cloud.
pub(super) async fn reach(host: &str) -> Result<(), ProviderError> {
    let missing = || {
        ProviderError::credentials(format!(
            "No metadata server answers within {REACH_LIMIT:?}, and credentials_env is not set"
        ))
    };
    let url = Url::parse(&format!("http://{host}")).map_err(|_error| missing())?;
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Err(missing());
    };
    // A URL has brackets around an IPv6 address, and a socket address has none.
    let connect = TcpStream::connect((host.trim_matches(['[', ']']).to_owned(), port));
    match timeout(REACH_LIMIT, connect).await {
        Ok(Ok(_connected)) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(missing()),
    }
}

/// The request with an assertion in the form of RFC 7523.
fn assertion(
    client: &Client,
    info: &ServiceAccountInfo,
) -> Result<reqwest::Request, ProviderError> {
    // The texts of the crate's errors could repeat parts of a key.
    let unusable =
        || ProviderError::credentials("The private key of the service account cannot sign");
    let provider = ServiceAccountProvider::new(info.clone()).map_err(|_error| unusable())?;
    let TokenOrRequest::Request { request, .. } =
        provider.get_token(&[SCOPE]).map_err(|_error| unusable())?
    else {
        return Err(unusable());
    };
    // The crate writes the signature in the common alphabet of Base64; RFC 7515 wants the one for addresses.
    let body = String::from_utf8(request.into_body()).map_err(|_error| unusable())?;
    let body = body.replace("%2B", "-").replace("%2F", "_");
    client
        .post(&info.token_uri)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(body)
        .build()
        .map_err(|_error| unusable())
}

fn refusal(status: StatusCode, body: &[u8], source: &Source) -> ProviderError {
    #[derive(Default, Deserialize)]
    struct Refusal {
        #[serde(default)]
        error: String,
    }
    // Only a word such as `invalid_grant` is shown; other texts could repeat the assertion.
    let word = serde_json::from_slice::<Refusal>(body)
        .unwrap_or_default()
        .error;
    let is_word = word.len() <= 40
        && word
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let word = if is_word && !word.is_empty() {
        format!(" {word}")
    } else {
        String::new()
    };
    let status = status.as_u16();
    let message = format!("No token for Vertex AI: {status}{word}{}", hint(source));
    let error = match status {
        408 | 429 | 500..=599 => ProviderError::transient(ErrorCode::Unavailable, message),
        _ => ProviderError::credentials(message),
    };
    error.with_status(status.to_string())
}

fn hint(source: &Source) -> &'static str {
    match source {
        Source::Machine { .. } => "; credentials_env is not set, so the metadata server was asked",
        Source::Service(_) | Source::Token(_) => "",
    }
}
