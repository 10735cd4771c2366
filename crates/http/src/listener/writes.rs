//! A connection whose client has to read: a write that makes no progress for too long ends the connection.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// A connection that can be closed without what its client has not read.
pub(super) trait Abort {
    /// Lets the drop of the connection discard what is not sent. Otherwise the system offers it to the client for
    /// minutes.
    fn discard_unsent(&self) -> Result<()>;
}

impl Abort for TcpStream {
    fn discard_unsent(&self) -> Result<()> {
        self.set_zero_linger()
    }
}

/// A connection with a time limit for writes. The time begins when the buffers of both sides are full, and begins again
/// when the client has read some of it.
#[derive(Debug)]
pub(super) struct TimedWrites<S> {
    stream: S,
    /// The value of the metric label of the same name.
    listener: &'static str,
    timeout: Duration,
    /// The deadline of the pending write, after which the connection ends; `None` while no write is pending.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S: Abort> TimedWrites<S> {
    /// A write of this connection may wait for `timeout`.
    pub(super) fn new(stream: S, listener: &'static str, timeout: Duration) -> Self {
        Self {
            stream,
            listener,
            timeout,
            deadline: None,
        }
    }

    /// The outcome of a write, unless it has waited for too long.
    fn limit(
        &mut self,
        written: Poll<Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<Result<usize>> {
        if written.is_ready() {
            self.deadline = None;
            return written;
        }
        let timeout = self.timeout;
        let deadline = self
            .deadline
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        if deadline.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        metrics::counter!("tarsy_connections_refused_total", "listener" => self.listener, "how" => "stalled")
            .increment(1);
        let stalled = Err(Error::new(ErrorKind::TimedOut, "the client reads nothing"));
        Poll::Ready(self.stream.discard_unsent().and(stalled))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedWrites<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Abort + Unpin> AsyncWrite for TimedWrites<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limit(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.limit(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
    use tokio::time::Instant;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(30);
    const BUFFER: usize = 1024;

    impl Abort for DuplexStream {
        fn discard_unsent(&self) -> Result<()> {
            Ok(())
        }
    }

    fn connection() -> (TimedWrites<DuplexStream>, DuplexStream) {
        let (server, client) = tokio::io::duplex(BUFFER);
        (TimedWrites::new(server, "web", TIMEOUT), client)
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_ends_when_its_client_has_read_nothing_for_the_time_limit() {
        let (mut server, _client) = connection();
        server.write_all(&[b'a'; BUFFER]).await.unwrap();
        // No write waits, so no time runs.
        tokio::time::advance(2 * TIMEOUT).await;
        let began = Instant::now();
        assert_eq!(
            server.write_all(b"a").await.unwrap_err().kind(),
            ErrorKind::TimedOut
        );
        assert_eq!(began.elapsed().as_secs(), TIMEOUT.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_gets_everything() {
        const PIECES: usize = 10;
        let (mut server, mut client) = connection();
        let writing = tokio::spawn(async move { server.write_all(&[b'a'; PIECES * BUFFER]).await });
        for _ in 0..PIECES {
            tokio::time::advance(TIMEOUT - Duration::from_secs(1)).await;
            client.read_exact(&mut [0; BUFFER]).await.unwrap();
            // The server writes before the next piece of time passes.
            tokio::task::yield_now().await;
        }
        writing.await.unwrap().unwrap();
    }
}
