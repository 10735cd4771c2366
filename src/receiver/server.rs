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
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::answer::answer;
use super::request::{Entrance, read};
use super::{Queue, Settings};
use crate::listener::{Seat, Seats};

/// For requests that are open when the door is closed; longer than a body and the queue may take together.
const DRAIN: Duration = Duration::from_secs(25);
/// After the system refused a connection: it is out of file descriptors, and trying again at once does not help.
const REFUSED: Duration = Duration::from_millis(200);
/// So many times the patience a connection may last; its client opens another one.
const LIFE: u32 = 30;
/// So many times the patience a request may take: its head, its body, the queue.
const LAST_REQUEST: u32 = 3;
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
    let seats = Seats::new("alerts", settings.limits);
    let door = Arc::new(Door { settings, queue });
    let connections = TaskTracker::new();
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, client)) => {
                let Some(seat) = seats.take(client.ip()) else {
                    refuse(&stream);
                    continue;
                };
                let (door, stop) = (Arc::clone(&door), stop.clone());
                connections.spawn(async move {
                    metrics::gauge!("tarsy_receive_connections").increment(1);
                    door.converse(stream, seat, stop).await;
                    metrics::gauge!("tarsy_receive_connections").decrement(1);
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

/// An answer for a client that listens, without a wait for one that does not. It tries again.
fn refuse(stream: &TcpStream) {
    let answer =
        b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    if let Err(error) = stream.try_write(answer) {
        tracing::debug!(%error, "a client of the door was refused and does not know why");
    }
}

impl<Q: Queue> Door<Q> {
    /// One connection, from its first request to its last.
    async fn converse(self: Arc<Self>, stream: TcpStream, seat: Arc<Seat>, stop: CancellationToken) {
        let (patience, head_patience) = (self.settings.patience, self.settings.head_patience);
        let own = Arc::clone(&seat);
        let service = service_fn(move |request: Request<Incoming>| {
            let (door, busy) = (Arc::clone(&self), own.busy());
            async move {
                let response = door.open(request).await;
                drop(busy);
                Ok::<_, Infallible>(response)
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(head_patience)
            .max_buf_size(MAX_HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        // A client that reads no answers would keep its seat for ever.
        let life = stop.run_until_cancelled(tokio::time::sleep(LIFE * patience));
        let ended = tokio::select! {
            ended = connection.as_mut() => Ok(ended),
            () = seat.taken_away() => return,
            _ = life => {
                connection.as_mut().graceful_shutdown();
                tokio::time::timeout(LAST_REQUEST * patience, connection).await
            }
        };
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a client of the door went away"),
            Err(_) => tracing::debug!("a client of the door was left"),
        }
    }

    async fn open(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let began = Instant::now();
        let entrance = Entrance::of_path(request.uri().path());
        let (outcome, left_out) = match read(&self.settings, entrance, request).await {
            Ok(visitor) => {
                let left_out = visitor.left_out.clone();
                (self.queue.put(visitor).await.map_err(Into::into), left_out)
            }
            Err(fault) => (Err(fault), Vec::new()),
        };
        let response = answer(outcome, &left_out);
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::listener::Limits;
    use crate::receiver::{Headers, Refused, Stored, Visitor};

    /// Nobody gets that far.
    #[derive(Debug)]
    struct Nowhere;

    impl Queue for Nowhere {
        async fn put(&self, _alert: Visitor) -> Result<Stored, Refused> {
            Err(Refused::Never("nowhere".to_owned()))
        }
    }

    #[tokio::test]
    async fn whoever_sends_requests_and_reads_no_answer_loses_the_seat() {
        let patience = Duration::from_millis(200);
        let (limits, headers) = (Limits { connections: 1, per_address: 1 }, Headers::default());
        let settings = Settings { token: None, max_body_bytes: 10, headers, head_patience: patience, patience, limits };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let door = tokio::spawn(serve(listener, settings, Nowhere, stop.clone()));
        let request = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
        let (mut deaf, many) = (TcpStream::connect(address).await.unwrap(), request.repeat(1000));
        // Until the buffers of both sides are full, and then until the door closes the connection.
        let stuffing = async { while deaf.write_all(&many).await.is_ok() {} };
        tokio::time::timeout(Duration::from_mins(1), stuffing).await.expect("the seat is kept");
        let mut next = TcpStream::connect(address).await.unwrap();
        next.write_all(request).await.unwrap();
        let mut status = [0; 12];
        next.read_exact(&mut status).await.unwrap();
        assert_eq!(&status, b"HTTP/1.1 404");
        stop.cancel();
        door.await.unwrap();
    }
}
