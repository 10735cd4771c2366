//! Serves the receiver's endpoints and counts its requests and connections.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::post;
use hyper::HeaderMap;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

use super::endpoint::Endpoint;
use super::readers::Readers;
use super::request::{RequestContent, RequestReader, handshake};
use super::response::{Accepted, Rejection, Report, response};
use super::{Queue, Settings};
use tarsy_core::intake::headers::TRACEPARENT;
use tarsy_core::trace_context::TraceContext;
use tarsy_engine::trace::{self, servers};
use tarsy_http::listener::http;

/// Longer than a body and the queue may take together.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(25);
/// The lifetime of a connection, as a multiple of the body timeout.
const LIFETIME_FACTOR: u32 = 30;
/// The time that one request may take for its head, its body and the queue, as a multiple of the body timeout.
const REQUEST_FACTOR: u32 = 3;
/// The answer to a client without a connection permit: it may try again.
pub(super) const OVER_LIMIT: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Receives alerts on `listener` until `stop` is cancelled, then finishes the open requests for a bounded time.
pub async fn serve<Q: Queue>(
    listener: TcpListener,
    settings: Settings,
    queue: Q,
    stop: CancellationToken,
) {
    let options = http::Options {
        name: "alerts",
        limits: settings.limits,
        header_timeout: settings.header_timeout,
        write_timeout: http::WRITE_TIMEOUT,
        lifetime: Some(LIFETIME_FACTOR * settings.body_timeout),
        last_request_timeout: REQUEST_FACTOR * settings.body_timeout,
        drain_timeout: DRAIN_TIMEOUT,
        over_limit_response: OVER_LIMIT,
        open_connections: Some("tarsy_receive_connections"),
    };
    let router = router(Arc::new(Receiver {
        settings: Arc::new(settings),
        readers: Readers::default(),
        queue,
    }));
    http::serve(listener, options, router, stop).await;
}

/// The first layer is the innermost.
fn router<Q: Queue>(receiver: Shared<Q>) -> Router {
    let hook = || post(take::<Q>).options(ask::<Q>);
    Router::new()
        .route("/alertmanager", post(take::<Q>))
        .route("/grafana", post(take::<Q>))
        .route("/alert", post(take::<Q>))
        .route("/hooks/{source}", hook())
        .route("/hooks/{source}/{*token}", hook())
        .fallback(async || response(Err(Rejection::UnknownPath)))
        .method_not_allowed_fallback(async || response(Err(Rejection::MethodNotAllowed)))
        .layer(from_fn_with_state(Arc::clone(&receiver), observe::<Q>))
        .with_state(receiver)
}

/// Takes the alerts of a request.
async fn take<Q: Queue>(State(receiver): State<Shared<Q>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let endpoint = Endpoint::of_path(&path, &receiver.settings.hooks);
    response(receiver.answer(endpoint, request).await)
}

/// Answers a sender of CloudEvents that asks whether it may send.
async fn ask<Q: Queue>(State(receiver): State<Shared<Q>>, request: Request) -> Response {
    let is_known = Endpoint::of_path(request.uri().path(), &receiver.settings.hooks).is_some();
    response(if is_known {
        handshake(request.headers()).map(Accepted::Handshake)
    } else {
        Err(Rejection::UnknownPath)
    })
}

/// Puts the request into a span, and counts it.
async fn observe<Q: Queue>(
    State(receiver): State<Shared<Q>>,
    request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let endpoint = Endpoint::of_path(request.uri().path(), &receiver.settings.hooks);
    let path = endpoint.map_or("other", Endpoint::as_str);
    let span = servers::receive(path, receiver.parent(request.headers()));
    let response = next.run(request).instrument(span.clone()).await;
    finish(&span, &response);
    count(path, &response);
    metrics::histogram!("tarsy_receive_request_duration_seconds")
        .record(began.elapsed().as_secs_f64());
    response
}

/// Counts a request; `path` is one of a closed set.
pub(super) fn count(path: &'static str, response: &Response) {
    let code = match response.status().as_u16() {
        ..400 => "2xx",
        400..500 => "4xx",
        500.. => "5xx",
    };
    metrics::counter!("tarsy_receive_requests_total", "path" => path, "code" => code).increment(1);
}

pub(super) fn finish(span: &Span, response: &Response) {
    span.record("http.response.status_code", response.status().as_u16());
    if response.status().is_server_error() {
        trace::fail(span, response.status().as_str());
    }
}

type Shared<Q> = Arc<Receiver<Q>>;

/// The part that all connections share.
#[derive(Debug)]
struct Receiver<Q> {
    settings: Arc<Settings>,
    readers: Readers,
    queue: Q,
}

impl<Q: Queue> Receiver<Q> {
    /// The trace of the client, if the operator trusts that header. An invalid context counts as none.
    fn parent(&self, headers: &HeaderMap) -> Option<TraceContext> {
        if !self.settings.headers.forwarded.contains(&TRACEPARENT) {
            return None;
        }
        TraceContext::parse(headers.get(TRACEPARENT)?.to_str().ok()?)
    }

    async fn answer(
        &self,
        endpoint: Option<Endpoint<'_>>,
        request: Request,
    ) -> Result<Accepted, Rejection> {
        let limit = self
            .queue
            .max_body_bytes()
            .unwrap_or(usize::MAX)
            .min(self.settings.max_alert_bytes);
        let reader = RequestReader {
            settings: &self.settings,
            readers: &self.readers,
            max_alert_bytes: limit,
        };
        match reader.read(endpoint, request).await? {
            RequestContent::Ignored { source, reason } => {
                count_alerts(source, "ignored", 1);
                tracing::debug!(source, reason, "alert ignored");
                Ok(Accepted::Ignored(reason))
            }
            RequestContent::Validation(answer) => Ok(Accepted::Validation(answer)),
            RequestContent::Alerts { source, alerts } => {
                let ignored_headers = alerts.ignored_headers.clone();
                let published = self.queue.publish(alerts).await?;
                count_alerts(source, "published", published.len());
                Ok(Accepted::Published(Report {
                    published,
                    ignored_headers,
                }))
            }
        }
    }
}

/// Counts alerts. Both labels are of closed sets.
fn count_alerts(source: &'static str, outcome: &'static str, count: usize) {
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    metrics::counter!("tarsy_receive_alerts_total", "source" => source, "outcome" => outcome)
        .increment(count);
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;
    use crate::{HeaderRules, InboundAlerts, PublishError, Published};
    use tarsy_http::listener::Limits;

    /// No request of this test gets as far as the queue.
    #[derive(Debug)]
    struct NoQueue;

    impl Queue for NoQueue {
        fn max_body_bytes(&self) -> Option<usize> {
            None
        }

        async fn publish(&self, _alerts: InboundAlerts) -> Result<Vec<Published>, PublishError> {
            Err(PublishError::Invalid("no queue".to_owned()))
        }
    }

    #[tokio::test]
    async fn a_client_that_sends_requests_and_reads_no_response_loses_its_connection() {
        let timeout = Duration::from_millis(200);
        let settings = Settings {
            token: None,
            hooks: Default::default(),
            intake: Default::default(),
            routes: Default::default(),
            max_body_bytes: 10,
            max_body_of_source: Default::default(),
            max_alert_bytes: 10,
            headers: HeaderRules::default(),
            header_timeout: timeout,
            body_timeout: timeout,
            limits: Limits {
                connections: 1,
                per_address: 1,
            },
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let serving = tokio::spawn(serve(listener, settings, NoQueue, stop.clone()));
        let request = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
        let mut deaf = TcpStream::connect(address).await.unwrap();
        let many = request.repeat(1000);
        // Until the buffers of both sides are full, and then until the receiver closes the connection.
        let flooding = async { while deaf.write_all(&many).await.is_ok() {} };
        tokio::time::timeout(Duration::from_mins(1), flooding)
            .await
            .expect("the connection stays open");
        let mut next = TcpStream::connect(address).await.unwrap();
        next.write_all(request).await.unwrap();
        let mut status = [0; 12];
        next.read_exact(&mut status).await.unwrap();
        assert_eq!(&status, b"HTTP/1.1 404");
        stop.cancel();
        serving.await.unwrap();
    }
}
