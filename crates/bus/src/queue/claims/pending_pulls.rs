//! Tracks the open pull requests, at most one per priority. Pure.
//!
//! A message does not name the request that it answers. One request per priority makes that unnecessary: a priority
//! whose request still waits has no alert, and a request is over when its last message or its status has arrived.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::names::Priority;

/// A pull request that waits at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PendingPull {
    number: usize,
    /// Alerts that the server may still send for it.
    left: usize,
    idle_timeout: Duration,
    /// The time when the next message or heartbeat is overdue.
    deadline: Instant,
}

impl PendingPull {
    fn extend(&mut self) {
        self.deadline = Instant::now() + self.idle_timeout;
    }
}

/// The pending pull requests by priority.
#[derive(Debug, Default)]
pub(super) struct PendingPulls {
    pending: HashMap<Priority, PendingPull>,
    sent: usize,
}

impl PendingPulls {
    /// Adds a request for `batch` alerts, whose messages and heartbeats come at least every `idle_timeout`; returns its
    /// number.
    pub(super) fn add(
        &mut self,
        priority: Priority,
        batch: usize,
        idle_timeout: Duration,
    ) -> usize {
        let number = self.sent;
        self.sent += 1;
        let pull = PendingPull {
            number,
            left: batch,
            idle_timeout,
            deadline: Instant::now() + idle_timeout,
        };
        self.pending.insert(priority, pull);
        number
    }

    pub(super) fn has(&self, priority: Priority) -> bool {
        self.pending.contains_key(&priority)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// The time when the first message or heartbeat is overdue.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.pending.values().map(|pull| pull.deadline).min()
    }

    /// An alert of this priority has arrived.
    pub(super) fn delivered(&mut self, priority: Priority) {
        if let Some(pull) = self.pending.get_mut(&priority) {
            pull.left = pull.left.saturating_sub(1);
            pull.extend();
        }
        self.pending.retain(|_, pull| pull.left > 0);
    }

    /// A heartbeat of request `number` has arrived.
    pub(super) fn heartbeat(&mut self, number: usize) {
        for pull in self.pending.values_mut() {
            if pull.number == number {
                pull.extend();
            }
        }
    }

    /// The server has ended request `number`.
    pub(super) fn ended(&mut self, number: usize) {
        self.pending.retain(|_, pull| pull.number != number);
    }

    /// Removes all requests, whose state at the server is unknown.
    pub(super) fn clear(&mut self) {
        self.pending.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE_TIMEOUT: Duration = Duration::from_secs(1);

    #[test]
    fn a_request_is_over_with_its_last_alert_or_its_status() {
        let mut pulls = PendingPulls::default();
        let high = pulls.add(Priority::High, 2, IDLE_TIMEOUT);
        let low = pulls.add(Priority::Low, 1, IDLE_TIMEOUT);
        pulls.delivered(Priority::High);
        assert!(
            pulls.has(Priority::High) && pulls.has(Priority::Low) && !pulls.has(Priority::Normal)
        );
        pulls.ended(low);
        pulls.delivered(Priority::High);
        assert!(pulls.is_empty());
        let again = pulls.add(Priority::High, 1, IDLE_TIMEOUT);
        pulls.ended(high);
        assert!(
            pulls.has(Priority::High),
            "the status of an earlier request does not end a later one"
        );
        pulls.ended(again);
        assert!(pulls.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_without_a_message_or_a_heartbeat_is_overdue() {
        let mut pulls = PendingPulls::default();
        assert_eq!(pulls.deadline(), None);
        let begun = Instant::now();
        let first = pulls.add(Priority::High, 1, IDLE_TIMEOUT);
        pulls.add(Priority::Low, 1, 3 * IDLE_TIMEOUT);
        assert_eq!(pulls.deadline(), Some(begun + IDLE_TIMEOUT));
        tokio::time::advance(IDLE_TIMEOUT / 2).await;
        pulls.heartbeat(first);
        assert_eq!(
            pulls.deadline(),
            Some(begun + IDLE_TIMEOUT + IDLE_TIMEOUT / 2)
        );
        pulls.clear();
        assert_eq!(pulls.deadline(), None);
    }
}
