//! `/metrics`, `/healthz` and `/readyz` of a role.
//!
//! `/healthz` answers as long as this process can answer: a dependency that is unavailable is no reason to restart it.
//! `/readyz` answers with the role's current [`Readiness`].

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::metrics::Metrics;
use tarsy_http::listener::{Limits, http};

const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

const LISTENER: http::Options = http::Options {
    name: "metrics",
    // Enough for some replicas of Prometheus, the probes and a person.
    limits: Limits {
        connections: 64,
        per_address: 32,
    },
    header_timeout: Duration::from_secs(3),
    write_timeout: http::WRITE_TIMEOUT,
    lifetime: None,
    last_request_timeout: DRAIN_TIMEOUT,
    drain_timeout: DRAIN_TIMEOUT,
    over_limit_response: b"",
    open_connections: None,
};

/// Whether a role takes work, and the response of `/readyz`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    /// The role takes work, but the named part does not work.
    Impaired(String),
    /// The role takes no work, for the given reason.
    NotReady(String),
}

/// Serves metrics and probes on `listener` until `stop` is cancelled, then lets open requests finish for 5 s.
pub async fn serve(
    listener: TcpListener,
    metrics: Metrics,
    readiness: watch::Receiver<Readiness>,
    stop: CancellationToken,
) {
    let router = router(&metrics, &readiness);
    http::serve(listener, LISTENER, router, stop).await;
}

fn router(metrics: &Metrics, readiness: &watch::Receiver<Readiness>) -> Router {
    let metrics = metrics.clone();
    let scraped = readiness.clone();
    let readiness = readiness.clone();
    Router::new()
        .route(
            "/metrics",
            get(async move || text(StatusCode::OK, render(&metrics, &scraped.borrow()))),
        )
        .route("/healthz", get(async || text(StatusCode::OK, "ok\n")))
        .route("/readyz", get(async move || ready(&readiness.borrow())))
        .fallback(async || {
            text(
                StatusCode::NOT_FOUND,
                "not found; available: /metrics, /healthz, /readyz\n",
            )
        })
        .method_not_allowed_fallback(async || text(StatusCode::METHOD_NOT_ALLOWED, "GET or HEAD\n"))
        .layer(from_fn(everyone))
}

/// Prometheus and probes have no credentials: a complete request is enough.
async fn everyone(request: Request, next: Next) -> Response {
    http::authenticated(request.extensions());
    next.run(request).await
}

fn render(metrics: &Metrics, readiness: &Readiness) -> String {
    let ready = u8::from(!matches!(readiness, Readiness::NotReady(_)));
    metrics::gauge!("tarsy_ready").set(f64::from(ready));
    metrics.render()
}

fn ready(readiness: &Readiness) -> Response {
    match readiness {
        Readiness::Ready => text(StatusCode::OK, "ok\n"),
        Readiness::Impaired(fault) => text(StatusCode::OK, format!("ok, but {fault}\n")),
        Readiness::NotReady(why) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}

/// Prometheus needs the version of its text format; probes ignore it.
fn text(status: StatusCode, body: impl Into<Body>) -> Response {
    let plain = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    (status, [(CONTENT_TYPE, plain)], body.into()).into_response()
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::task::JoinHandle;

    use super::*;

    struct Served {
        address: SocketAddr,
        readiness: watch::Sender<Readiness>,
        stop: CancellationToken,
        task: JoinHandle<()>,
    }

    async fn served(readiness: Readiness) -> Served {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, receiver) = watch::channel(readiness);
        let stop = CancellationToken::new();
        let task = tokio::spawn(serve(
            listener,
            Metrics::for_tests(),
            receiver,
            stop.clone(),
        ));
        Served {
            address,
            readiness: sender,
            stop,
            task,
        }
    }

    /// Status and body.
    async fn ask(address: SocketAddr, request_line: &str) -> (String, String) {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request =
            format!("{request_line} HTTP/1.1\r\nhost: tarsy\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        tokio::time::timeout(DRAIN_TIMEOUT, stream.read_to_string(&mut answer))
            .await
            .expect("no response")
            .unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap().to_owned(), body.to_owned())
    }

    #[tokio::test]
    async fn readiness_follows_the_role_and_liveness_does_not() {
        let served = served(Readiness::NotReady("no model".to_owned())).await;
        let ready = |(status, body): (String, String)| (status, body.trim_end().to_owned());
        let unavailable = (
            "HTTP/1.1 503 Service Unavailable".to_owned(),
            "no model".to_owned(),
        );
        let ok = ("HTTP/1.1 200 OK".to_owned(), "ok".to_owned());
        assert_eq!(ready(ask(served.address, "GET /readyz").await), unavailable);
        assert_eq!(ready(ask(served.address, "GET /healthz").await), ok);
        served.readiness.send_replace(Readiness::Ready);
        assert_eq!(ready(ask(served.address, "GET /readyz").await), ok);
    }

    #[tokio::test]
    async fn metrics_are_served_and_other_requests_refused() {
        let served = served(Readiness::Ready).await;
        let (status, body) = ask(served.address, "GET /metrics").await;
        assert_eq!(status, "HTTP/1.1 200 OK");
        assert!(
            body.contains("# TYPE tarsy_sessions_opened_total counter"),
            "{body}"
        );
        assert_eq!(
            ask(served.address, "GET /").await.0,
            "HTTP/1.1 404 Not Found"
        );
        assert_eq!(
            ask(served.address, "POST /metrics").await.0,
            "HTTP/1.1 405 Method Not Allowed"
        );
    }

    #[tokio::test]
    async fn the_listener_ends_on_its_token_while_an_idle_client_is_connected() {
        let served = served(Readiness::Ready).await;
        let mut idle = TcpStream::connect(served.address).await.unwrap();
        idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: tarsy\r\n\r\n")
            .await
            .unwrap();
        let mut first = [0; 15];
        idle.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200 OK");
        served.stop.cancel();
        tokio::time::timeout(Duration::from_secs(1), served.task)
            .await
            .expect("the listener does not end")
            .unwrap();
    }
}
