//! The HTTP listener of the roles: accepts connections, serves HTTP/1 on each, and drains them when it is stopped.
//!
//! Owns the life of a connection: its permit, its timeouts and its end. What a request is answered with is the
//! router's business.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::{Error, Router, body};
use hyper::Request;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::http::Extensions;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use metrics::Gauge;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::writes::TimedWrites;
use super::{ConnectionLimiter, ConnectionPermit, Exchange, Limits};

/// The pause after a failed accept: the process is out of file descriptors, and trying again at once does not help.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(200);
/// The largest head of a request. Webhooks have a few hundred bytes.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// The longest time that a client may read nothing while a response waits for it. For every role.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Limits and timeouts of one listener.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The listener's name in metrics and log lines.
    pub name: &'static str,
    pub limits: Limits,
    /// The time limit for the head of a request; also the longest time that a connection may be idle.
    pub header_timeout: Duration,
    /// The time limit for a write that makes no progress because the client reads nothing.
    pub write_timeout: Duration,
    /// The longest time that a connection may last before its client has to open another one; `None` is without a
    /// limit.
    pub lifetime: Option<Duration>,
    /// The time limit for the request in flight when the connection's lifetime or the listener ends.
    pub last_request_timeout: Duration,
    /// The time limit for all connections together when the listener is stopped.
    pub drain_timeout: Duration,
    /// The bytes that are written to a connection which gets no permit, before it is closed.
    pub over_limit_response: &'static [u8],
    /// The name of the gauge of open connections, if the listener has one.
    pub open_connections: Option<&'static str>,
}

/// An extension of every request: the address at the other end of its connection, which may be that of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

/// An extension of every request: the permit of its connection.
#[derive(Clone, Debug)]
struct Permit(Arc<ConnectionPermit>);

/// The sender of the request with these extensions is known, or needs not be: no newer connection takes the place of
/// its connection until the answer is written.
pub fn authenticated(request: &Extensions) {
    if let Some(Permit(permit)) = request.get() {
        permit.authenticate();
    }
}

/// Serves `router` until `stop` is cancelled, then drains the open connections. Each request has a [`ClientAddress`],
/// and is unauthenticated until the router calls [`authenticated`].
pub async fn serve(
    listener: TcpListener,
    options: Options,
    router: Router,
    stop: CancellationToken,
) {
    let limiter = ConnectionLimiter::new(options.name, options.limits);
    let connections = TaskTracker::new();
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, client)) => match limiter.acquire(client.ip()) {
                Some(permit) => {
                    let connection = Connection {
                        stream,
                        client: ClientAddress(client.ip()),
                        permit,
                        options,
                        stop: stop.clone(),
                    };
                    connections.spawn(connection.serve(router.clone()));
                }
                None => refuse(&stream, &options),
            },
            Err(error) => {
                tracing::warn!(listener = options.name, %error, "accept failed");
                // No signal tells when there are file descriptors again.
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
    drop(listener);
    connections.close();
    let drained = tokio::time::timeout(options.drain_timeout, connections.wait()).await;
    if drained.is_err() {
        tracing::warn!(
            listener = options.name,
            connections = connections.len(),
            "connections still open at shutdown: dropped"
        );
    }
}

/// Writes without waiting, so that a client which does not read holds nothing up.
fn refuse(stream: &TcpStream, options: &Options) {
    if let Err(error) = stream.try_write(options.over_limit_response) {
        tracing::debug!(listener = options.name, %error, "connection over the limit closed without a response");
    }
}

/// One accepted connection.
struct Connection {
    stream: TcpStream,
    client: ClientAddress,
    permit: Arc<ConnectionPermit>,
    options: Options,
    stop: CancellationToken,
}

impl Connection {
    /// Serves from the first request to the last one.
    async fn serve(self, router: Router) {
        let Self {
            stream,
            client,
            permit,
            options,
            stop,
        } = self;
        let _counted = options.open_connections.map(Counted::new);
        let router = TowerToHyperService::new(router);
        let permit_of_requests = Arc::clone(&permit);
        let service = service_fn(move |mut request: Request<Incoming>| {
            let extensions = request.extensions_mut();
            extensions.insert(client);
            extensions.insert(Permit(Arc::clone(&permit_of_requests)));
            let exchange = permit_of_requests.begin();
            let response = router.call(request);

            async move {
                let response = response.await?;
                Ok::<_, Infallible>(response.map(|body| ResponseBody {
                    body,
                    _exchange: exchange,
                }))
            }
        });
        let stream = TimedWrites::new(stream, options.name, options.write_timeout);
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(options.header_timeout)
            .max_buf_size(MAX_HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => Ok(ended),
            () = permit.revoked() => return,
            () = end_of_life(options.lifetime, &stop) => {
                connection.as_mut().graceful_shutdown();
                tokio::time::timeout(options.last_request_timeout, connection).await
            }
        };
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!(listener = options.name, %error, "connection closed before its end")
            }
            Err(_elapsed) => tracing::debug!(
                listener = options.name,
                "connection dropped: its last request timed out"
            ),
        }
    }
}

/// Counts one open connection until it is dropped.
struct Counted(Gauge);

impl Counted {
    fn new(name: &'static str) -> Self {
        let gauge = metrics::gauge!(name);
        gauge.increment(1);
        Self(gauge)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}

/// The body of a response: the exchange lasts until all of it is written, which takes long for a stream.
struct ResponseBody {
    body: body::Body,
    _exchange: Exchange,
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Returns when the connection takes no further request. Without a lifetime, a client that reads little by little would
/// keep its permit for ever.
async fn end_of_life(lifetime: Option<Duration>, stop: &CancellationToken) {
    match lifetime {
        Some(lifetime) => drop(stop.run_until_cancelled(tokio::time::sleep(lifetime)).await),
        None => stop.cancelled().await,
    }
}
