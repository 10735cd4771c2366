//! Reads bodies on separate threads: decoding a large body takes a second, which would block the other clients of a
//! runtime thread.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tracing::Span;

use super::budget::Budget;
use super::response::Rejection;

/// A larger body is read alone, so that only one needs memory for its text in addition to its bytes.
const LARGE_BYTES: usize = 512 * 1024;
/// Bodies of usual sizes that are read at the same time.
const READERS: usize = 4;
/// The time limit of the wait for bodies that are read first.
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

/// The state that all connections share.
#[derive(Debug)]
pub(super) struct Readers {
    pub(super) budget: Budget,
    usual: Arc<Semaphore>,
    large: Arc<Semaphore>,
}

impl Default for Readers {
    fn default() -> Self {
        Self {
            budget: Budget::default(),
            usual: Arc::new(Semaphore::new(READERS)),
            large: Arc::new(Semaphore::new(1)),
        }
    }
}

impl Readers {
    /// The result of work on a body of so many bytes.
    ///
    /// # Errors
    /// When other bodies take all of this time, or the work panicked.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Rejection> {
        let readers = if bytes > LARGE_BYTES {
            &self.large
        } else {
            &self.usual
        };
        let waited = tokio::time::timeout(WAIT_TIMEOUT, Arc::clone(readers).acquire_owned()).await;
        let Ok(Ok(permit)) = waited else {
            return Err(Rejection::unavailable("other bodies are being read"));
        };
        let span = Span::current();
        let read = tokio::task::spawn_blocking(move || {
            // Held by the thread: a client that leaves does not end its work.
            let _permit = permit;
            span.in_scope(work)
        });
        read.await.map_err(|error| {
            tracing::error!("reading a body panicked: {error}");
            Rejection::unavailable("the body could not be read")
        })
    }
}
