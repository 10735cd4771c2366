//! Time limit and cancellation for rendering: work stops when its time is over or its reader has left.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

thread_local! {
    /// The limit of the work that this thread does now.
    static PRESENT: RefCell<Option<Limit>> = const { RefCell::new(None) };
}

/// Whether the work of this thread has become useless: its time is over, or its reader has left. Work without a limit,
/// such as that of a test, is never over.
pub(crate) fn is_over() -> bool {
    PRESENT.with_borrow(|present| present.as_ref().is_some_and(Limit::is_over))
}

#[derive(Clone, Debug)]
pub(super) struct Limit {
    until: Instant,
    has_left: Arc<AtomicBool>,
}

/// Ends the work when it is dropped.
#[derive(Debug)]
pub(super) struct EndOnDrop(Arc<AtomicBool>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Limit {
    pub(super) fn new(timeout: Duration) -> Self {
        Self {
            until: Instant::now() + timeout,
            has_left: Arc::default(),
        }
    }

    pub(super) fn end_on_drop(&self) -> EndOnDrop {
        EndOnDrop(Arc::clone(&self.has_left))
    }

    fn is_over(&self) -> bool {
        self.has_left.load(Ordering::Relaxed) || Instant::now() >= self.until
    }

    /// Does the work under this limit; `None` if it was over before the work was done.
    pub(super) fn within<T>(self, work: impl FnOnce() -> T) -> Option<T> {
        if self.is_over() {
            return None;
        }
        let before = PRESENT.replace(Some(self.clone()));
        let _restore = Restore(before);
        let done = work();
        (!self.is_over()).then_some(done)
    }
}

/// Gives the thread back its limit, also after a panic.
struct Restore(Option<Limit>);

impl Drop for Restore {
    fn drop(&mut self) {
        PRESENT.replace(self.0.take());
    }
}
