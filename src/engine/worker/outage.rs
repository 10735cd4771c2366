//! When the store was unavailable last, as this worker saw it: a lease that ran out then says nothing about its owner.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// What was seen of the store: by the probe, and by the renewals. Renewals can fail while the probe is answered: one
/// table may be locked.
#[derive(Debug, Default)]
pub struct Outages {
    probes: Mutex<Seen>,
    renewals: Mutex<Seen>,
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

impl Seen {
    /// The store was asked now.
    fn look(&mut self, answers: bool) {
        let now = Instant::now();
        match (answers, self.up_at, self.last) {
            (true, _, Some(Outage { after, until: None })) => {
                self.last = Some(Outage { after, until: Some(now) });
            }
            (false, Some(up_at), None | Some(Outage { until: Some(_), .. })) => {
                self.last = Some(Outage { after: up_at, until: None });
            }
            // Nothing new, or never seen answering: a worker that has just started knows nothing of the past.
            (true | false, _, _) => {}
        }
        if answers {
            self.up_at = Some(now);
        }
    }

    fn excuse(&self, lease: Duration) -> Duration {
        let Some(outage) = self.last else { return Duration::ZERO };
        let over_for = outage.until.map_or(Duration::ZERO, |until| until.elapsed());
        if over_for < lease.saturating_mul(2) { outage.after.elapsed() } else { Duration::ZERO }
    }
}

impl Outages {
    /// The probe has asked the store now.
    pub(super) fn look(&self, answers: bool) {
        self.probes.lock().unwrap_or_else(PoisonError::into_inner).look(answers);
    }

    /// A renewal has succeeded or failed now. Without a lease to renew none can have failed.
    pub(super) fn renewed(&self, succeeded: bool) {
        self.renewals.lock().unwrap_or_else(PoisonError::into_inner).look(succeeded);
    }

    /// A lease that ran out less than this ago did so while nobody could renew it. Zero when there was no outage, or
    /// when it was over for longer than the owners of leases need to renew them or to die of something else.
    pub(crate) fn excuse(&self, lease: Duration) -> Duration {
        let of = |seen: &Mutex<Seen>| seen.lock().unwrap_or_else(PoisonError::into_inner).excuse(lease);
        of(&self.probes).max(of(&self.renewals))
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
        assert_eq!(outages.excuse(LEASE), Duration::ZERO, "nothing was unavailable");
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

    #[tokio::test(start_paused = true)]
    async fn renewals_that_fail_excuse_leases_although_the_probe_is_answered() {
        let outages = Outages::default();
        for second in 0..60 {
            outages.look(true);
            if second % 10 == 0 {
                outages.renewed(second < 20);
            }
            pass(1).await;
        }
        assert_eq!(outages.excuse(LEASE), Duration::from_secs(50), "since the last one that succeeded");
        outages.renewed(true);
        pass(59).await;
        assert_eq!(outages.excuse(LEASE), Duration::from_secs(109));
        pass(1).await;
        assert_eq!(outages.excuse(LEASE), Duration::ZERO);
    }
}
