//! Notices that alerts wait although they are asked for: a client library or a server has lost a request. Pure.

use std::time::Duration;

use async_nats::jetstream::consumer::Info;
use tokio::time::Instant;

use crate::bus::names::Priority;

/// A priority with alerts that could be delivered, and how far its delivery has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    priority: Priority,
    delivered: u64,
}

impl Standing {
    /// `None` when there is nothing to deliver, or the consumer is at its limit of unanswered alerts.
    pub(super) fn of(priority: Priority, info: &Info) -> Option<Self> {
        let limit = usize::try_from(info.config.max_ack_pending).unwrap_or(usize::MAX);
        let waits = info.num_pending > 0 && info.num_ack_pending < limit;
        waits.then_some(Self { priority, delivered: info.delivered.consumer_sequence })
    }
}

/// Looks twice before it barks: between two looks another worker may have taken what the first one saw.
#[derive(Debug)]
pub(super) struct Watchdog {
    patience: Duration,
    again: Duration,
    next_look: Instant,
    suspects: Vec<Standing>,
}

impl Watchdog {
    /// Suspects a stall after `patience` without a claim and looks a second time `again` later.
    pub(super) fn new(patience: Duration, again: Duration) -> Self {
        Self { patience, again, next_look: Instant::now() + patience, suspects: Vec::new() }
    }

    /// All is well: an alert was claimed, or none was wanted until now.
    pub(super) fn calm(&mut self) {
        self.next_look = Instant::now() + self.patience;
        self.suspects.clear();
    }

    /// Whether it is time to look.
    pub(super) fn is_due(&self) -> bool {
        Instant::now() >= self.next_look
    }

    /// Takes what a look has found; returns a priority that has not moved since the look before.
    pub(super) fn looked(&mut self, found: Vec<Standing>) -> Option<Priority> {
        let stalled = found.iter().find(|standing| self.suspects.contains(standing)).map(|standing| standing.priority);
        if stalled.is_some() || found.is_empty() {
            self.calm();
        } else {
            self.next_look = Instant::now() + self.again;
            self.suspects = found;
        }
        stalled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);
    const AGAIN: Duration = Duration::from_secs(2);

    fn at(priority: Priority, delivered: u64) -> Standing {
        Standing { priority, delivered }
    }

    #[tokio::test(start_paused = true)]
    async fn alerts_that_wait_at_two_looks_without_a_delivery_are_a_stall() {
        let mut watchdog = Watchdog::new(PATIENCE, AGAIN);
        assert!(!watchdog.is_due());
        tokio::time::advance(PATIENCE).await;
        assert!(watchdog.is_due());
        assert_eq!(watchdog.looked(vec![at(Priority::High, 7)]), None);
        assert!(!watchdog.is_due());
        tokio::time::advance(AGAIN).await;
        assert!(watchdog.is_due());
        assert_eq!(watchdog.looked(vec![at(Priority::High, 7)]), Some(Priority::High));
        assert!(!watchdog.is_due(), "once a patience");
    }

    #[tokio::test(start_paused = true)]
    async fn what_another_worker_takes_between_two_looks_is_none() {
        let mut watchdog = Watchdog::new(PATIENCE, AGAIN);
        assert_eq!(watchdog.looked(vec![at(Priority::High, 7)]), None);
        assert_eq!(watchdog.looked(vec![at(Priority::High, 8)]), None);
        assert_eq!(watchdog.looked(Vec::new()), None);
        assert_eq!(watchdog.looked(vec![at(Priority::High, 8)]), None);
        watchdog.calm();
        assert_eq!(watchdog.looked(vec![at(Priority::High, 8)]), None);
    }
}
