//! Connection limits of the service. At the limit, a connection that has sent nothing is closed for a new one. A
//! connection that has sent something is kept, because a worker holds its connection for its whole life.

use std::future::{Future, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::{Stream, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tonic::transport::server::{Connected, TcpConnectInfo, TcpIncoming};

use crate::listener::{ConnectionLimiter, ConnectionPermit, InUse, Limits};

/// A worker has one connection. A proxy in front of many workers is one address.
const LIMITS: Limits = Limits { connections: 1_024, per_address: 256 };

/// The connections that get a permit. Any other connection is closed.
pub(super) fn limited(incoming: TcpIncoming) -> impl Stream<Item = io::Result<LimitedConnection>> {
    let limiter = ConnectionLimiter::new("llm", LIMITS);
    incoming
        .filter_map(move |stream| ready(stream.map(|stream| LimitedConnection::accept(&limiter, stream)).transpose()))
}

/// A connection and its permit.
pub(super) struct LimitedConnection {
    stream: TcpStream,
    permit: Arc<ConnectionPermit>,
    in_use: Option<InUse>,
    revoked: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl LimitedConnection {
    fn accept(limiter: &ConnectionLimiter, stream: TcpStream) -> Option<Self> {
        let permit = limiter.acquire(stream.peer_addr().ok()?.ip())?;
        let watched = Arc::clone(&permit);
        let revoked = Box::pin(async move { watched.revoked().await });
        Some(Self { stream, permit, in_use: None, revoked })
    }
}

impl Connected for LimitedConnection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for LimitedConnection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.in_use.is_none() && self.revoked.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let before = into.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, into);
        if self.in_use.is_none() && into.filled().len() > before {
            self.in_use = Some(self.permit.in_use());
        }
        read
    }
}

impl AsyncWrite for LimitedConnection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
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
