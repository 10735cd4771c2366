//! Renders pages on separate threads: a large text delays only its own page, for a limited time, and not after its
//! reader has left.
//!
//! A thread cannot be stopped from outside. So code that works through a long text asks [`is_over`] now and then, and
//! stops early; its result is dropped.

mod limit;

use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;

pub(super) use self::limit::is_over;

use self::limit::Limit;
use crate::ports::Unavailable;

/// The longest time that a page may be made, the wait for a thread included. Without optimisation the same work takes
/// ten to forty times as long.
const TIMEOUT: Duration = Duration::from_secs(if cfg!(debug_assertions) { 120 } else { 10 });

/// The threads that make markup: as many at once as there are processors.
#[derive(Debug)]
pub(super) struct Renderer {
    threads: Arc<Semaphore>,
    timeout: Duration,
}

impl Default for Renderer {
    fn default() -> Self {
        Self::new(available_parallelism().map_or(1, usize::from), TIMEOUT)
    }
}

impl Renderer {
    fn new(threads: usize, timeout: Duration) -> Self {
        Self {
            threads: Arc::new(Semaphore::new(threads)),
            timeout,
        }
    }

    /// Runs `work` on a separate thread and returns its result. Dropping the future ends the work early.
    ///
    /// # Errors
    /// When it took too long, or panicked.
    pub(super) async fn render<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unavailable> {
        let limit = Limit::new(self.timeout);
        let _ends = limit.end_on_drop();
        let made = async {
            // The semaphore is never closed.
            let thread = Arc::clone(&self.threads).acquire_owned().await.ok();
            let made = tokio::task::spawn_blocking(move || {
                // Held until the thread is free, also when no reader waits any more.
                let _thread = thread;
                limit.within(work)
            });
            made.await
        };
        match timeout(self.timeout, made).await {
            Ok(Ok(Some(made))) => Ok(made),
            Ok(Ok(None)) | Err(_) => {
                let secs = self.timeout.as_secs();
                tracing::warn!("page not rendered: it took longer than {secs} s");
                Err(Unavailable(format!(
                    "this page takes longer than {secs} s to make"
                )))
            }
            Ok(Err(panic)) => {
                tracing::error!("page not rendered: {panic}");
                Err(Unavailable("this page could not be made".to_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Instant;

    use super::*;

    /// Works until it is over, at most a minute; reports then how long that took.
    fn work(report: mpsc::Sender<Duration>) -> impl FnOnce() + Send + 'static {
        move || {
            let begun = Instant::now();
            while !is_over() && begun.elapsed() < Duration::from_mins(1) {
                std::thread::yield_now();
            }
            report.send(begun.elapsed()).unwrap();
        }
    }

    #[tokio::test]
    async fn a_page_is_made_on_another_thread_than_that_of_its_request() {
        let renderer = Renderer::default();
        let own = std::thread::current().id();
        assert_ne!(
            renderer
                .render(|| std::thread::current().id())
                .await
                .unwrap(),
            own
        );
        assert_eq!(renderer.render(is_over).await, Ok(false));
    }

    #[tokio::test]
    async fn a_page_that_takes_too_long_ends_and_frees_its_thread() {
        let renderer = Renderer::new(1, Duration::from_millis(50));
        let (report, took) = mpsc::channel();
        let failed = renderer.render(work(report)).await.unwrap_err();
        assert_eq!(
            failed.to_string(),
            "this page takes longer than 0 s to make"
        );
        assert!(took.recv().unwrap() < Duration::from_secs(50));
        let renderer = Renderer {
            timeout: TIMEOUT,
            ..renderer
        };
        assert_eq!(renderer.render(|| 7).await, Ok(7));
    }

    #[tokio::test]
    async fn a_reader_that_leaves_ends_the_work_for_its_page() {
        let renderer = Renderer::new(1, Duration::from_mins(2));
        let (report, took) = mpsc::channel();
        let (begun, has_begun) = mpsc::channel();
        let work = work(report);
        let mut page = Box::pin(renderer.render(move || {
            begun.send(()).unwrap();
            work();
        }));
        assert!(futures_util::poll!(page.as_mut()).is_pending());
        has_begun.recv().unwrap();
        drop(page);
        assert!(took.recv().unwrap() < Duration::from_secs(50));
        assert_eq!(renderer.render(|| 7).await, Ok(7));
    }

    #[tokio::test]
    async fn a_panic_fails_only_its_own_page() {
        let renderer = Renderer::new(1, TIMEOUT);
        assert!(renderer.render(|| panic!("at the disco")).await.is_err());
        assert_eq!(renderer.render(|| 7).await, Ok(7));
    }
}
