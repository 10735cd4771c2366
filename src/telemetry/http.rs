//! One small listener: `/metrics`, `/healthz`, `/readyz`.
//!
//! `/healthz` answers as long as this process can answer: a neighbour that is unavailable must not restart it. `/readyz`
//! says what the role last said about itself.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::metrics::Metrics;
use crate::listener::{Limits, Seat, Seats};

/// For all of an answer's connection once the role ends.
const PATIENCE: Duration = Duration::from_secs(5);
/// For the head of a request.
const HEAD_PATIENCE: Duration = Duration::from_secs(3);
/// Some replicas of Prometheus, the probes and a person.
const LIMITS: Limits = Limits { connections: 64, per_address: 32 };
/// After the system refused a connection: it is out of file descriptors, and trying again at once does not help.
const REFUSED: Duration = Duration::from_millis(200);

/// Whether a role takes work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It does.
    Ready,
    /// It does, and something is wrong all the same.
    Impaired(String),
    /// It does not, and why.
    NotReady(String),
}

/// Answers on `listener` until `stop` is cancelled, then lets open answers finish for a bounded time.
pub async fn serve(
    listener: TcpListener,
    metrics: Metrics,
    readiness: watch::Receiver<Readiness>,
    stop: CancellationToken,
) {
    let (connections, seats) = (TaskTracker::new(), Seats::new("metrics", LIMITS));
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, client)) => {
                if let Some(seat) = seats.take(client.ip()) {
                    connections.spawn(converse((stream, seat), metrics.clone(), readiness.clone(), stop.clone()));
                }
            }
            Err(error) => {
                tracing::warn!(%error, "the listener for metrics and probes cannot accept");
                // No signal tells when there are file descriptors again.
                tokio::time::sleep(REFUSED).await;
            }
        }
    }
    connections.close();
    if tokio::time::timeout(PATIENCE, connections.wait()).await.is_err() {
        tracing::debug!("a client of metrics and probes did not close its connection");
    }
}

/// One connection, from its first request to its last.
async fn converse(
    (stream, seat): (TcpStream, Arc<Seat>),
    metrics: Metrics,
    readiness: watch::Receiver<Readiness>,
    stop: CancellationToken,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let response = answer(request.method(), request.uri().path(), &metrics, &readiness.borrow());
        async move { Ok::<_, Infallible>(response) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        // Answers are ready at once: a connection without a seat only waits.
        () = seat.taken_away() => return,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a client of metrics and probes went away");
    }
}

fn answer(method: &Method, path: &str, metrics: &Metrics, readiness: &Readiness) -> Response<Full<Bytes>> {
    if !["/metrics", "/healthz", "/readyz"].contains(&path) {
        return text(StatusCode::NOT_FOUND, "here are /metrics, /healthz and /readyz\n".to_owned());
    }
    if method != Method::GET && method != Method::HEAD {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "GET or HEAD\n".to_owned());
        response.headers_mut().insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match (path, readiness) {
        ("/metrics", _) => text(StatusCode::OK, metrics.render()),
        ("/healthz", _) | (_, Readiness::Ready) => text(StatusCode::OK, "ok\n".to_owned()),
        (_, Readiness::Impaired(what)) => text(StatusCode::OK, format!("ok, but {what}\n")),
        (_, Readiness::NotReady(why)) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    // Metrics are read in this version of the text form; the probes do not mind.
    let plain = hyper::header::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
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
        let task = tokio::spawn(serve(listener, Metrics::for_tests(), receiver, stop.clone()));
        Served { address, readiness: sender, stop, task }
    }

    /// Status and body.
    async fn ask(address: SocketAddr, request_line: &str) -> (String, String) {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("{request_line} HTTP/1.1\r\nhost: tarsy\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer)).await.expect("an answer").unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap().to_owned(), body.to_owned())
    }

    #[tokio::test]
    async fn readiness_follows_the_role_and_liveness_does_not() {
        let served = served(Readiness::NotReady("no model".to_owned())).await;
        let ready = |(status, body): (String, String)| (status, body.trim_end().to_owned());
        let unavailable = ("HTTP/1.1 503 Service Unavailable".to_owned(), "no model".to_owned());
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
        assert!(body.contains("# TYPE tarsy_sessions_opened_total counter"), "{body}");
        assert_eq!(ask(served.address, "GET /").await.0, "HTTP/1.1 404 Not Found");
        assert_eq!(ask(served.address, "POST /metrics").await.0, "HTTP/1.1 405 Method Not Allowed");
    }

    #[tokio::test]
    async fn it_ends_on_its_token_with_an_idle_client_connected() {
        let served = served(Readiness::Ready).await;
        let mut idle = TcpStream::connect(served.address).await.unwrap();
        idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: tarsy\r\n\r\n").await.unwrap();
        let mut first = [0; 15];
        idle.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200 OK");
        served.stop.cancel();
        tokio::time::timeout(Duration::from_secs(1), served.task).await.expect("it has to end").unwrap();
    }
}
