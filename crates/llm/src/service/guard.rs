//! Refuses calls without a valid token.
//!
//! The health check needs no token, because probes have none. If the service asks for a token and the call has not
//! sent a valid one, the answer carries `www-authenticate`, so that a client knows it before its first model call.

use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::WWW_AUTHENTICATE;
use axum::middleware::Next;
use axum::response::Response;
use tonic::Status;
use tonic_health::pb::health_server::SERVICE_NAME as HEALTH;

use super::limited::Client;
use super::security::Security;

const SCHEME: &str = "Bearer";
const UNAUTHENTICATED: &str = "this LLM service asks for a bearer token: set TARSY_LLM_TOKEN or TARSY_LLM_TOKEN_FILE as it has it";

/// Passes a call on if it has a token of `security`, or is one of the health check.
pub(super) async fn guard(
    State(security): State<Security>,
    request: Request,
    next: Next,
) -> Response {
    if security.permits(request.headers()) {
        if let Some(client) = request.extensions().get::<Client>() {
            client.authenticate();
        }
        return next.run(request).await;
    }
    let mut answer = if request.uri().path().split('/').nth(1) == Some(HEALTH) {
        next.run(request).await
    } else {
        metrics::counter!("tarsy_llm_unauthenticated_total", "lacks" => "token").increment(1);
        Status::unauthenticated(UNAUTHENTICATED).into_http()
    };
    answer
        .headers_mut()
        .insert(WWW_AUTHENTICATE, HeaderValue::from_static(SCHEME));
    answer
}
