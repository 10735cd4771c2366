//! Detects stalled claims: alerts wait although they are requested, because the client library or the server has lost a
//! pull request. Pure.

use std::time::Duration;

use async_nats::jetstream::consumer::Info;
use tokio::time::Instant;

use crate::names::Priority;

/// The consumer of a priority that has alerts to deliver, and how many it has delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConsumerProgress {
    priority: Priority,
    delivered: u64,
}

impl ConsumerProgress {
    /// `None` if the consumer has nothing to deliver, or is at its limit of unacknowledged alerts.
    pub(super) fn new(priority: Priority, info: &Info) -> Option<Self> {
        let limit = usize::try_from(info.config.max_ack_pending).unwrap_or(usize::MAX);
        let is_waiting = info.num_pending > 0 && info.num_ack_pending < limit;
        is_waiting.then_some(Self {
            priority,
            delivered: info.delivered.consumer_sequence,
        })
    }
}

/// Reports a priority only when two consecutive checks see the same progress, because another worker may have claimed
/// its alerts in between.
#[derive(Debug)]
pub(super) struct Watchdog {
    stall_after: Duration,
    recheck_after: Duration,
    next_check: Instant,
    suspects: Vec<ConsumerProgress>,
}

impl Watchdog {
    /// Checks after `stall_after` without a claim, and a second time `recheck_after` later.
    pub(super) fn new(stall_after: Duration, recheck_after: Duration) -> Self {
        Self {
            stall_after,
            recheck_after,
            next_check: Instant::now() + stall_after,
            suspects: Vec::new(),
        }
    }

    /// An alert was claimed, or none was wanted until now: starts the interval again.
    pub(super) fn reset(&mut self) {
        self.next_check = Instant::now() + self.stall_after;
        self.suspects.clear();
    }

    pub(super) fn is_due(&self) -> bool {
        Instant::now() >= self.next_check
    }

    /// Records the consumers that have alerts to deliver; returns a priority without progress since the check before.
    pub(super) fn record_check(&mut self, waiting: Vec<ConsumerProgress>) -> Option<Priority> {
        let stalled = waiting
            .iter()
            .find(|progress| self.suspects.contains(progress))
            .map(|progress| progress.priority);
        if stalled.is_some() || waiting.is_empty() {
            self.reset();
        } else {
            self.next_check = Instant::now() + self.recheck_after;
            self.suspects = waiting;
        }
        stalled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALL_AFTER: Duration = Duration::from_secs(60);
    const RECHECK_AFTER: Duration = Duration::from_secs(2);

    fn waiting(priority: Priority, delivered: u64) -> Vec<ConsumerProgress> {
        vec![ConsumerProgress {
            priority,
            delivered,
        }]
    }

    #[tokio::test(start_paused = true)]
    async fn a_consumer_without_progress_between_two_checks_is_stalled() {
        let mut watchdog = Watchdog::new(STALL_AFTER, RECHECK_AFTER);
        assert!(!watchdog.is_due());
        tokio::time::advance(STALL_AFTER).await;
        assert!(watchdog.is_due());
        assert_eq!(watchdog.record_check(waiting(Priority::High, 7)), None);
        assert!(!watchdog.is_due());
        tokio::time::advance(RECHECK_AFTER).await;
        assert!(watchdog.is_due());
        assert_eq!(
            watchdog.record_check(waiting(Priority::High, 7)),
            Some(Priority::High)
        );
        assert!(!watchdog.is_due(), "a stall is reported once per interval");
    }

    #[tokio::test(start_paused = true)]
    async fn an_alert_that_another_worker_claims_between_two_checks_is_no_stall() {
        let mut watchdog = Watchdog::new(STALL_AFTER, RECHECK_AFTER);
        assert_eq!(watchdog.record_check(waiting(Priority::High, 7)), None);
        assert_eq!(watchdog.record_check(waiting(Priority::High, 8)), None);
        assert_eq!(watchdog.record_check(Vec::new()), None);
        assert_eq!(watchdog.record_check(waiting(Priority::High, 8)), None);
        watchdog.reset();
        assert_eq!(watchdog.record_check(waiting(Priority::High, 8)), None);
    }
}
