//! A connection that is read line by line.
//!
//! Answers that an attacker adds to that of STARTTLS, before TLS begins, would otherwise wait in a buffer and count as
//! the server's own behind TLS. As long as they stay in the connection, the handshake reads them, and fails.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use lettre::transport::smtp::client::AsyncTokioStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The longest part of a line that is read at once.
const PART: usize = 1024;

#[derive(Debug)]
pub(super) struct Lines(pub(super) TcpStream);

impl AsyncTokioStream for Lines {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.peer_addr()
    }
}

impl AsyncRead for Lines {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = &mut self.get_mut().0;
        let mut bytes = [0; PART];
        let room = bytes.get_mut(..buffer.remaining().min(PART));
        let mut seen = ReadBuf::new(room.unwrap_or_default());
        ready!(stream.poll_peek(cx, &mut seen))?;
        let seen = seen.filled();
        let end = seen.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(seen.len(), |end| end + 1);

        let mut line = ReadBuf::new(bytes.get_mut(..length).unwrap_or_default());
        ready!(Pin::new(stream).poll_read(cx, &mut line))?;
        buffer.put_slice(line.filled());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Lines {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(cx)
    }
}
