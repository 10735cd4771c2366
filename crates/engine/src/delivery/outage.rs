//! `Outages`, the record of when this worker saw the store unavailable. A lease that expired in an outage is no
//! evidence that its owner has died.

use parking_lot::Mutex;
use std::time::Duration;

use tokio::time::Instant;

/// The outages of the store that the probe and the renewals observed. Renewals can fail while the probe succeeds: one
/// table may be locked.
#[derive(Debug, Default)]
pub struct Outages {
    probes: Mutex<History>,
    renewals: Mutex<History>,
}

/// Whether the store answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreCheck {
    Passed,
    Failed,
}

impl StoreCheck {
    pub(crate) fn from_result<T, E>(answer: &Result<T, E>) -> Self {
        if answer.is_ok() {
            Self::Passed
        } else {
            Self::Failed
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct History {
    /// The last time that the store answered.
    up_at: Option<Instant>,
    last_outage: Option<Outage>,
}

#[derive(Clone, Copy, Debug)]
struct Outage {
    /// The store's last answer before the outage: its beginning is not known more exactly.
    after: Instant,
    until: Option<Instant>,
}

impl History {
    fn record(&mut self, check: StoreCheck) {
        let now = Instant::now();
        match (check, self.up_at, self.last_outage) {
            (StoreCheck::Passed, _, Some(Outage { after, until: None })) => {
                self.last_outage = Some(Outage {
                    after,
                    until: Some(now),
                });
            }
            (StoreCheck::Failed, Some(up_at), None | Some(Outage { until: Some(_), .. })) => {
                self.last_outage = Some(Outage {
                    after: up_at,
                    until: None,
                });
            }
            // Nothing changes, or the store has never answered: a worker that has just started knows nothing of the
            // past.
            (StoreCheck::Passed | StoreCheck::Failed, _, _) => {}
        }
        if check == StoreCheck::Passed {
            self.up_at = Some(now);
        }
    }

    fn grace(&self, lease: Duration) -> Duration {
        let Some(outage) = self.last_outage else {
            return Duration::ZERO;
        };
        let over_for = outage.until.map_or(Duration::ZERO, |until| until.elapsed());
        // Two leases: an owner that survived the outage has renewed by then, and one that has not is dead.
        if over_for < lease.saturating_mul(2) {
            outage.after.elapsed()
        } else {
            Duration::ZERO
        }
    }
}

impl Outages {
    /// The probe has just asked the store.
    pub(crate) fn probed(&self, check: StoreCheck) {
        self.probes.lock().record(check);
    }

    /// Leases have just been renewed, or not.
    pub(crate) fn renewed(&self, check: StoreCheck) {
        self.renewals.lock().record(check);
    }

    /// A lease that expired less than this ago could not be renewed by its owner. Zero without an outage, and when the
    /// outage ended longer ago than owners need to renew their leases or to die for another reason.
    pub fn grace(&self, lease: Duration) -> Duration {
        self.probes
            .lock()
            .grace(lease)
            .max(self.renewals.lock().grace(lease))
    }
}

#[cfg(test)]
mod tests {
    use super::StoreCheck::{Failed, Passed};
    use super::*;

    const LEASE: Duration = Duration::from_secs(30);

    async fn pass(secs: u64) {
        tokio::time::advance(Duration::from_secs(secs)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_excuses_leases_from_the_last_answer_until_two_leases_after_it() {
        let outages = Outages::default();
        outages.probed(Passed);
        pass(2).await;
        assert_eq!(
            outages.grace(LEASE),
            Duration::ZERO,
            "nothing was unavailable"
        );
        outages.probed(Failed);
        pass(58).await;
        outages.probed(Failed);
        assert_eq!(outages.grace(LEASE), Duration::from_secs(60));
        outages.probed(Passed);
        pass(59).await;
        outages.probed(Passed);
        assert_eq!(outages.grace(LEASE), Duration::from_secs(119));
        pass(1).await;
        assert_eq!(
            outages.grace(LEASE),
            Duration::ZERO,
            "a worker that dies now dies for another reason"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_never_reached_the_store_excuses_nothing() {
        let outages = Outages::default();
        outages.probed(Failed);
        pass(10).await;
        outages.probed(Passed);
        assert_eq!(
            outages.grace(LEASE),
            Duration::ZERO,
            "a crash loop must not hide its deaths"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn each_outage_counts_from_its_own_beginning() {
        let outages = Outages::default();
        outages.probed(Passed);
        outages.probed(Failed);
        pass(10).await;
        outages.probed(Passed);
        pass(5).await;
        outages.probed(Passed);
        outages.probed(Failed);
        pass(3).await;
        assert_eq!(outages.grace(LEASE), Duration::from_secs(3));
    }

    #[tokio::test(start_paused = true)]
    async fn renewals_that_fail_excuse_leases_although_the_probe_succeeds() {
        let outages = Outages::default();
        for second in 0..60 {
            outages.probed(Passed);
            if second % 10 == 0 {
                outages.renewed(if second < 20 { Passed } else { Failed });
            }
            pass(1).await;
        }
        assert_eq!(
            outages.grace(LEASE),
            Duration::from_secs(50),
            "since the last one that succeeded"
        );
        outages.renewed(Passed);
        pass(59).await;
        assert_eq!(outages.grace(LEASE), Duration::from_secs(109));
        pass(1).await;
        assert_eq!(outages.grace(LEASE), Duration::ZERO);
    }
}
