//! Connection limits and TLS of the listener. At a limit, a connection without an authenticated call is closed for a
//! new one. One that has had such a call is kept, because a worker holds its connection for its whole life.

use std::future::{Future, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tonic::transport::server::{Connected, TcpIncoming};

use super::security::ServerTls;
use tarsy_http::listener::{ConnectionLimiter, ConnectionPermit, Limits};

/// A worker has one connection. A proxy in front of many workers is one address.
const LIMITS: Limits = Limits {
    connections: 1_024,
    per_address: 256,
};
/// A client that takes longer has no interest in an answer.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);

/// The connections that get a permit and finish their TLS handshake. Any other connection is closed.
pub(super) fn limited(
    incoming: TcpIncoming,
    tls: Option<Arc<ServerTls>>,
) -> impl Stream<Item = io::Result<LimitedConnection>> {
    let limiter = ConnectionLimiter::new("llm", LIMITS);
    incoming
        .filter_map(move |stream| {
            let permitted = stream
                .map(|stream| Some((permit(&limiter, &stream)?, stream)))
                .transpose();
            ready(permitted)
        })
        .map(move |accepted| {
            let tls = tls.clone();
            async move {
                match accepted {
                    Ok((permit, stream)) => LimitedConnection::secured(permit, stream, tls)
                        .await
                        .map(Ok),
                    Err(error) => Some(Err(error)),
                }
            }
        })
        // A slow handshake must not delay those of other clients.
        .buffer_unordered(LIMITS.connections)
        .filter_map(ready)
}

fn permit(limiter: &ConnectionLimiter, stream: &TcpStream) -> Option<Arc<ConnectionPermit>> {
    limiter.acquire(stream.peer_addr().ok()?.ip())
}

/// A connection that fails is read to its end for a moment. If it were closed with unread bytes, the system would reset
/// it, and the client would lose the alert that names the fault.
async fn shake_hands(stream: TcpStream, tls: &ServerTls) -> io::Result<TlsStream<TcpStream>> {
    let (error, mut stream) = match tls.acceptor().accept(stream).into_fallible().await {
        Ok(stream) => return Ok(stream),
        Err(failed) => failed,
    };
    let end = async {
        stream.shutdown().await?;
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
    };
    tokio::time::timeout(LINGER_TIMEOUT, end).await.ok();
    Err(error)
}

/// A connection and its permit.
pub(super) struct LimitedConnection {
    stream: Either<TcpStream, Box<TlsStream<TcpStream>>>,
    permit: Arc<ConnectionPermit>,
    revoked: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl LimitedConnection {
    /// `None` if the handshake fails, or takes so long that a newer connection takes the permit.
    async fn secured(
        permit: Arc<ConnectionPermit>,
        stream: TcpStream,
        tls: Option<Arc<ServerTls>>,
    ) -> Option<Self> {
        let client = stream.peer_addr();
        let stream = match tls {
            None => Either::Left(stream),
            Some(tls) => {
                let handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, shake_hands(stream, &tls));
                let done = tokio::select! {
                    done = handshake => done.unwrap_or_else(|_elapsed| Err(io::ErrorKind::TimedOut.into())),
                    () = permit.revoked() => Err(io::ErrorKind::ConnectionAborted.into()),
                };
                if let Err(error) = &done {
                    metrics::counter!("tarsy_llm_unauthenticated_total", "lacks" => "tls")
                        .increment(1);
                    tracing::debug!(?client, %error, "connection closed: no TLS handshake");
                }
                Either::Right(Box::new(done.ok()?))
            }
        };
        let watched = Arc::clone(&permit);
        let revoked = Box::pin(async move { watched.revoked().await });
        Some(Self {
            stream,
            permit,
            revoked,
        })
    }
}

impl Connected for LimitedConnection {
    type ConnectInfo = Client;

    fn connect_info(&self) -> Client {
        Client(Arc::clone(&self.permit))
    }
}

/// An extension of every call: its connection.
#[derive(Clone, Debug)]
pub(super) struct Client(Arc<ConnectionPermit>);

impl Client {
    /// A call of this connection was authenticated: the connection keeps its permit until its end.
    pub(super) fn authenticate(&self) {
        self.0.authenticate();
    }
}

impl AsyncRead for LimitedConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // An idle connection waits in a read, so a revoked permit ends it here.
        if self.revoked.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for LimitedConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
