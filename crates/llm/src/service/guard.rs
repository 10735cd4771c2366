//! Refuses calls without a valid token.
//!
//! The health check needs no token, because probes have none. If the service asks for a token and the call has not
//! sent a valid one, the answer carries `www-authenticate`, so that a client knows it before its first model call.

use std::convert::Infallible;
use std::task::{Context, Poll};

use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::HeaderValue;
use tonic::codegen::http::header::WWW_AUTHENTICATE;
use tonic::codegen::{BoxFuture, Service, http};
use tonic_health::pb::health_server::SERVICE_NAME as HEALTH;

use super::limited::Client;
use super::security::Security;

const SCHEME: &str = "Bearer";
const UNAUTHENTICATED: &str = "this LLM service asks for a bearer token: set TARSY_LLM_TOKEN or TARSY_LLM_TOKEN_FILE as it has it";

type Answer = http::Response<Body>;

/// A gRPC service behind the tokens of `security`.
#[derive(Clone, Debug)]
pub(super) struct Guard<S> {
    pub(super) service: S,
    pub(super) security: Security,
}

impl<S> Service<http::Request<Body>> for Guard<S>
where
    S: Service<
            http::Request<Body>,
            Response = Answer,
            Error = Infallible,
            Future = BoxFuture<Answer, Infallible>,
        >,
{
    type Response = Answer;
    type Error = Infallible;
    type Future = BoxFuture<Answer, Infallible>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        if self.security.permits(request.headers()) {
            if let Some(client) = request.extensions().get::<Client>() {
                client.authenticate();
            }
            return self.service.call(request);
        }
        if request
            .uri()
            .path()
            .trim_start_matches('/')
            .split('/')
            .next()
            == Some(HEALTH)
        {
            let answer = self.service.call(request);
            return Box::pin(async { answer.await.map(asking_for_a_token) });
        }
        metrics::counter!("tarsy_llm_unauthenticated_total", "lacks" => "token").increment(1);
        let refused = asking_for_a_token(Status::unauthenticated(UNAUTHENTICATED).into_http());
        Box::pin(std::future::ready(Ok(refused)))
    }
}

fn asking_for_a_token(mut answer: Answer) -> Answer {
    answer
        .headers_mut()
        .insert(WWW_AUTHENTICATE, HeaderValue::from_static(SCHEME));
    answer
}
