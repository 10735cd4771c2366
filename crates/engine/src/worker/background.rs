//! `Background`, the essential tasks of a worker: the worker stops when one of them ends.
//!
//! A worker whose renewal has panicked would live on, claim alerts and lose each of them after one lease.

use std::sync::Arc;

use tokio::sync::SetOnce;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Tasks that run until the worker ends.
#[derive(Debug, Default)]
pub struct Background {
    tasks: TaskTracker,
    end: CancellationToken,
    broken: Arc<SetOnce<&'static str>>,
}

impl Background {
    /// Starts a task, which has to run until the token is cancelled.
    pub fn spawn<F>(&self, name: &'static str, task: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let end = self.end.clone();
        let broken = Arc::clone(&self.broken);
        // In a separate task, so that its panic arrives here as an error.
        let task = tokio::spawn(task(self.end.clone()));
        self.tasks.spawn(async move {
            match task.await {
                Ok(()) if end.is_cancelled() => return,
                Ok(()) => tracing::error!(task = name, "background task ended too early"),
                Err(panic) => tracing::error!(task = name, "background task panicked: {panic}"),
            }
            // Only the name of the first one is kept.
            broken.set(name).ok();
        });
    }

    /// Waits for a task that panics or ends too early, and returns the name of the first one. Cancel safe.
    pub async fn broken(&self) -> &'static str {
        self.broken.wait().await
    }

    /// Ends every task and waits for them. Returns the name of the first one that had broken before.
    pub async fn finish(self) -> Option<&'static str> {
        self.end.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.broken.get().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_background_task_that_panics_or_ends_is_named_and_the_others_still_end() {
        let background = Background::default();
        background.spawn("good", |end| async move { end.cancelled().await });
        background.spawn("renewal", |_| async { panic!("no reason") });
        assert_eq!(background.broken().await, "renewal");
        assert_eq!(background.finish().await, Some("renewal"));

        let background = Background::default();
        background.spawn("probe", |_| async {});
        assert_eq!(background.broken().await, "probe");
        assert_eq!(background.finish().await, Some("probe"));
    }

    #[tokio::test]
    async fn tasks_that_end_when_they_have_to_are_not_broken() {
        let background = Background::default();
        background.spawn("good", |end| async move { end.cancelled().await });
        assert_eq!(background.finish().await, None);
    }
}
