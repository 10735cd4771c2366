//! Serves the router on the listener that the roles share.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::access::Gate;
use crate::hub::Hub;
use crate::ports::Backend;
use crate::rendering::Renderer;
use crate::router::router;
use crate::state::Web;
use tarsy_http::listener::{Limits, http};

/// The time limit for the head of a request; also the longest time that a connection may be idle.
const HEADER_TIMEOUT: Duration = Duration::from_secs(75);
/// A client that has read nothing for so long loses its connection. A stream of events continues in the next one.
const LIFETIME: Duration = Duration::from_hours(1);
/// Longer than any call of a port.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(25);
/// The answer to a client without a connection permit: it may try again.
const OVER_LIMIT: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 3\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// The rules of a web server.
#[derive(Debug)]
pub struct Settings {
    pub gate: Gate,
    pub limits: Limits,
    /// Streams of events that one user may have open at the same time.
    pub streams_per_user: usize,
}

/// Serves until `stop` is cancelled, then finishes the open requests for a bounded time. Streams of events end at once:
/// their readers continue at another replica.
pub async fn serve<B: Backend>(
    listener: TcpListener,
    settings: Settings,
    backend: Arc<B>,
    stop: CancellationToken,
) {
    let options = options(settings.limits);
    serve_with(options, listener, settings, backend, stop).await;
}

fn options(limits: Limits) -> http::Options {
    http::Options {
        name: "web",
        limits,
        header_timeout: HEADER_TIMEOUT,
        write_timeout: http::WRITE_TIMEOUT,
        lifetime: Some(LIFETIME),
        last_request_timeout: REQUEST_TIMEOUT,
        drain_timeout: REQUEST_TIMEOUT,
        over_limit_response: OVER_LIMIT,
        open_connections: None,
    }
}

async fn serve_with<B: Backend>(
    options: http::Options,
    listener: TcpListener,
    settings: Settings,
    backend: Arc<B>,
    stop: CancellationToken,
) {
    let hub = Hub::new(
        Arc::clone(&backend),
        settings.streams_per_user,
        stop.clone(),
    );
    let web = Web {
        backend,
        hub,
        renderer: Renderer::default(),
    };
    let router = router(Arc::new(web), Arc::new(settings.gate));
    http::serve(listener, options, router, stop).await;
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use tokio::io::{AsyncWriteExt as _, Interest};
    use tokio::net::TcpStream;

    use super::*;
    use crate::testing::backend::{FakeBackend, settings};
    use crate::testing::data::story;

    /// More than the buffers of both sides hold.
    const LARGE_EVENTS: u32 = 96;

    /// A session that runs, with events of 256 KiB.
    fn large_session() -> Arc<FakeBackend> {
        let first = &story()[0];
        let events = (1..=LARGE_EVENTS).map(|session_seq| {
            let mut event = first.clone();
            event.session_seq = session_seq;
            event.content = "a".repeat(256 * 1024);
            event
        });
        FakeBackend::with(events.collect())
    }

    /// A client that asks for all events in this form and reads nothing loses its connection.
    async fn loses_its_connection(accept: &str) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let settings = settings();
        let options = http::Options {
            write_timeout: Duration::from_millis(200),
            ..options(settings.limits)
        };
        let serving = tokio::spawn(serve_with(
            options,
            listener,
            settings,
            large_session(),
            stop.clone(),
        ));
        let mut client = TcpStream::connect(address).await.unwrap();
        let path = format!("/api/v1/sessions/{}/events", story()[0].session_id);
        let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: {accept}\r\n\r\n");
        client.write_all(head.as_bytes()).await.unwrap();
        let closed =
            tokio::time::timeout(Duration::from_mins(1), client.ready(Interest::ERROR)).await;
        closed.expect("the connection stays open").unwrap();
        let error = client.take_error().unwrap().map(|error| error.kind());
        assert_eq!(error, Some(ErrorKind::ConnectionReset));
        stop.cancel();
        serving.await.unwrap();
    }

    #[test]
    fn a_client_may_read_nothing_for_thirty_seconds() {
        let options = options(settings().limits);
        assert_eq!(options.write_timeout, Duration::from_secs(30));
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_a_large_answer_loses_its_connection() {
        loses_its_connection("application/json").await;
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_its_stream_loses_its_connection() {
        loses_its_connection("text/event-stream").await;
    }
}
