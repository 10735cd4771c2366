//! Connections of the service: each has a seat. One that has sent nothing gives it up to the next when there are too many;
//! one that has begun to speak keeps it, because a worker holds its connection for as long as it lives.

use std::future::{Future, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::{Stream, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tonic::transport::server::{Connected, TcpConnectInfo, TcpIncoming};

use crate::listener::{Busy, Limits, Seat, Seats};

/// A worker has one connection; a proxy in front of many is one address.
const LIMITS: Limits = Limits { connections: 1_024, per_address: 256 };

/// The connections that get a seat; any other is closed.
pub(super) fn seated(incoming: TcpIncoming) -> impl Stream<Item = io::Result<Seated>> {
    let seats = Seats::new("llm", LIMITS);
    incoming.filter_map(move |stream| ready(stream.map(|stream| Seated::take(&seats, stream)).transpose()))
}

/// A connection on its seat.
pub(super) struct Seated {
    stream: TcpStream,
    seat: Arc<Seat>,
    busy: Option<Busy>,
    taken_away: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Seated {
    fn take(seats: &Seats, stream: TcpStream) -> Option<Self> {
        let seat = seats.take(stream.peer_addr().ok()?.ip())?;
        let watched = Arc::clone(&seat);
        let taken_away = Box::pin(async move { watched.taken_away().await });
        Some(Self { stream, seat, busy: None, taken_away })
    }
}

impl Connected for Seated {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Seated {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.busy.is_none() && self.taken_away.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let before = into.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, into);
        if self.busy.is_none() && into.filled().len() > before {
            self.busy = Some(self.seat.busy());
        }
        read
    }
}

impl AsyncWrite for Seated {
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
