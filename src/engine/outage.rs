//! When the store was away last, as this worker saw it: a lease that ran out then says nothing about its owner.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// What the probe has seen of the store.
#[derive(Debug, Default)]
pub struct Outages {
    seen: Mutex<Seen>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// The last time that the store answered.
    up_at: Option<Instant>,
    last: Option<Outage>,
}

#[derive(Clone, Copy, Debug)]
struct Outage {
    /// The store still answered: nobody knows when it began more exactly.
    after: Instant,
    until: Option<Instant>,
}

impl Outages {
    /// The store was asked now.
    pub(super) fn look(&self, answers: bool) {
        let now = Instant::now();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match (answers, seen.up_at, seen.last) {
            (true, _, Some(Outage { after, until: None })) => {
                seen.last = Some(Outage { after, until: Some(now) });
            }
            (false, Some(up_at), None | Some(Outage { until: Some(_), .. })) => {
                seen.last = Some(Outage { after: up_at, until: None });
            }
            // Nothing new, or never seen answering: a worker that has just started knows nothing of the past.
            (true | false, _, _) => {}
        }
        if answers {
            seen.up_at = Some(now);
        }
    }

    /// A lease that ran out less than this ago did so while nobody could renew it. Zero when there was no outage, or
    /// when it was over for longer than the owners of leases need to renew them or to die of something else.
    pub(super) fn excuse(&self, lease: Duration) -> Duration {
        let Some(outage) = self.seen.lock().unwrap_or_else(PoisonError::into_inner).last else {
            return Duration::ZERO;
        };
        let over_for = outage.until.map_or(Duration::ZERO, |until| until.elapsed());
        if over_for < lease.saturating_mul(2) { outage.after.elapsed() } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(30);

    async fn pass(secs: u64) {
        tokio::time::advance(Duration::from_secs(secs)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_excuses_leases_since_the_store_last_answered_until_two_leases_after_it() {
        let outages = Outages::default();
        outages.look(true);
        pass(2).await;
        assert_eq!(outages.excuse(LEASE), Duration::ZERO, "nothing was away");
        outages.look(false);
        pass(58).await;
        outages.look(false);
        assert_eq!(outages.excuse(LEASE), Duration::from_secs(60));
        outages.look(true);
        pass(59).await;
        outages.look(true);
        assert_eq!(outages.excuse(LEASE), Duration::from_secs(119));
        pass(1).await;
        assert_eq!(outages.excuse(LEASE), Duration::ZERO, "whoever dies now dies of something else");
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_never_reached_the_store_excuses_nothing() {
        let outages = Outages::default();
        outages.look(false);
        pass(10).await;
        outages.look(true);
        assert_eq!(outages.excuse(LEASE), Duration::ZERO, "a crash loop must not hide the deaths that it is made of");
    }

    #[tokio::test(start_paused = true)]
    async fn each_outage_counts_from_its_own_beginning() {
        let outages = Outages::default();
        outages.look(true);
        outages.look(false);
        pass(10).await;
        outages.look(true);
        pass(5).await;
        outages.look(true);
        outages.look(false);
        pass(3).await;
        assert_eq!(outages.excuse(LEASE), Duration::from_secs(3));
    }
}
