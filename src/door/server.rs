//! The life of the door and of each connection.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::answer::answer;
use super::request::{Entrance, read};
use super::{Queue, Settings};

/// For requests that are open when the door is closed; longer than a body and the queue may take together.
const DRAIN: Duration = Duration::from_secs(25);
/// After the system refused a connection: it is out of file descriptors, and trying again at once does not help.
const REFUSED: Duration = Duration::from_millis(200);
/// Of a request's head. Webhooks have a few hundred.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// What every connection needs.
#[derive(Debug)]
struct Door<Q> {
    settings: Settings,
    queue: Q,
}

/// Lets alerts in on `listener` until `stop` is cancelled, then finishes the open requests for a bounded time.
pub async fn serve<Q: Queue>(listener: TcpListener, settings: Settings, queue: Q, stop: CancellationToken) {
    let seats = Arc::new(Semaphore::new(settings.connections));
    let door = Arc::new(Door { settings, queue });
    let connections = TaskTracker::new();
    let next = async || {
        // Without a seat nobody is let in: who comes waits where the system keeps them.
        let seat = Arc::clone(&seats).acquire_owned().await;
        (listener.accept().await, seat)
    };
    while let Some((accepted, seat)) = stop.run_until_cancelled(next()).await {
        match accepted {
            Ok((stream, _)) => {
                let (door, stop) = (Arc::clone(&door), stop.clone());
                connections.spawn(async move {
                    metrics::gauge!("tarsy_receive_connections").increment(1);
                    door.converse(stream, stop).await;
                    metrics::gauge!("tarsy_receive_connections").decrement(1);
                    drop(seat);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the door cannot accept");
                // No signal tells when there are file descriptors again.
                tokio::time::sleep(REFUSED).await;
            }
        }
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(DRAIN, connections.wait()).await.is_err() {
        tracing::warn!("requests are left unanswered: {}", connections.len());
    }
}

impl<Q: Queue> Door<Q> {
    /// One connection, from its first request to its last.
    async fn converse(self: Arc<Self>, stream: TcpStream, stop: CancellationToken) {
        let patience = self.settings.patience;
        let service = service_fn(move |request: Request<Incoming>| {
            let door = Arc::clone(&self);
            async move { Ok::<_, Infallible>(door.open(request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(patience)
            .max_buf_size(MAX_HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let ended = match stop.run_until_cancelled(connection.as_mut()).await {
            Some(ended) => ended,
            None => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a client of the door went away");
        }
    }

    async fn open(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let began = Instant::now();
        let entrance = Entrance::of_path(request.uri().path());
        let outcome = match read(&self.settings, entrance, request).await {
            Ok(visitor) => self.queue.put(visitor).await.map_err(Into::into),
            Err(fault) => Err(fault),
        };
        let response = answer(outcome);
        let path = entrance.map_or("other", Entrance::as_str);
        let code = match response.status().as_u16() {
            ..400 => "2xx",
            400..500 => "4xx",
            500.. => "5xx",
        };
        metrics::counter!("tarsy_receive_requests_total", "path" => path, "code" => code).increment(1);
        metrics::histogram!("tarsy_receive_request_duration_seconds").record(began.elapsed().as_secs_f64());
        response
    }
}
