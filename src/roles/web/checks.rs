//! The checks of the system that pages show: some seconds old, so that many readers cost as much as one.

use parking_lot::Mutex;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use tokio::time::Instant;

use tarsy_reports::Check;

const MAX_AGE: Duration = Duration::from_secs(10);

type Running = Shared<BoxFuture<'static, Vec<Check>>>;

/// The last checks, or those that run now.
#[derive(Debug, Default)]
pub(super) struct RecentChecks(Mutex<Option<(Instant, Running)>>);

impl RecentChecks {
    /// The results of checks that began within the last seconds; otherwise those of `begin`, for which all readers wait
    /// together.
    pub(super) async fn get(
        &self,
        begin: impl FnOnce() -> BoxFuture<'static, Vec<Check>>,
    ) -> Vec<Check> {
        let running = {
            let mut recent = self.0.lock();
            match &*recent {
                Some((at, running)) if at.elapsed() < MAX_AGE => running.clone(),
                Some(_) | None => {
                    let running = begin().shared();
                    *recent = Some((Instant::now(), running.clone()));
                    running
                }
            }
        };
        running.await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use tarsy_reports::Verdict;

    #[tokio::test(start_paused = true)]
    async fn many_readers_cost_one_check_in_ten_seconds() {
        let recent = RecentChecks::default();
        let begun = AtomicU32::new(0);

        let ask = || {
            recent.get(|| {
                begun.fetch_add(1, Ordering::Relaxed);
                let checks = async {
                    tokio::time::sleep(Duration::from_secs(1)).await; // the time of a check
                    vec![Check::new("nats", Verdict::Ok, "2.11.0")]
                };
                checks.boxed()
            })
        };
        let answers = futures_util::future::join_all((0..100).map(|_| ask())).await;
        assert!(answers.iter().all(|answer| answer.len() == 1));
        assert_eq!((ask().await.len(), begun.load(Ordering::Relaxed)), (1, 1));
        tokio::time::advance(MAX_AGE).await;
        assert_eq!((ask().await.len(), begun.load(Ordering::Relaxed)), (1, 2));
    }
}
