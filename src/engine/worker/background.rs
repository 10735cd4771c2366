//! Tasks that a worker cannot do without: one that ends before it is told to is noticed.
//!
//! A worker whose renewal has panicked would live on, claim alerts and lose each of them after one lease.

use std::future::Future;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Tasks that run until the worker ends.
#[derive(Debug)]
pub struct Background {
    tasks: TaskTracker,
    end: CancellationToken,
    broken: watch::Sender<Option<&'static str>>,
}

impl Default for Background {
    fn default() -> Self {
        let (tasks, end) = (TaskTracker::new(), CancellationToken::new());
        Self { tasks, end, broken: watch::Sender::new(None) }
    }
}

impl Background {
    /// What every task has to end on.
    pub fn end(&self) -> CancellationToken {
        self.end.clone()
    }

    /// Starts a task.
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let (end, broken) = (self.end.clone(), self.broken.clone());
        self.tasks.spawn(async move {
            let ended = tokio::spawn(task).await;
            if let Err(panic) = &ended {
                tracing::error!(task = name, "a background task panicked: {panic}");
            } else if !end.is_cancelled() {
                tracing::error!(task = name, "a background task has ended");
            }
            if ended.is_err() || !end.is_cancelled() {
                broken.send_if_modified(|broken| {
                    let first = broken.is_none();
                    broken.get_or_insert(name);
                    first
                });
            }
        });
    }

    /// Returns the name of the first task that panicked or ended by itself. Cancel safe.
    pub async fn broken(&self) -> &'static str {
        let mut broken = self.broken.subscribe();
        let name = broken.wait_for(Option::is_some).await.ok().and_then(|name| *name);
        match name {
            Some(name) => name,
            // The sender lives in `self`, so waiting cannot fail.
            None => std::future::pending().await,
        }
    }

    /// Ends every task and waits for them; returns the first one that had broken before.
    pub async fn finish(self) -> Option<&'static str> {
        self.end.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        *self.broken.borrow()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_background_task_that_panics_or_ends_is_named_and_the_others_still_end() {
        let background = Background::default();
        let end = background.end();
        background.spawn("good", async move { end.cancelled().await });
        background.spawn("renewal", async { panic!("no reason") });
        assert_eq!(background.broken().await, "renewal");
        assert_eq!(background.finish().await, Some("renewal"));

        let background = Background::default();
        background.spawn("probe", async {});
        assert_eq!(background.broken().await, "probe");
        assert_eq!(background.finish().await, Some("probe"));
    }

    #[tokio::test]
    async fn tasks_that_end_when_they_are_told_are_not_broken() {
        let background = Background::default();
        let end = background.end();
        background.spawn("good", async move { end.cancelled().await });
        assert_eq!(background.finish().await, None);
    }
}
