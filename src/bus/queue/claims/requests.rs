//! The pull requests that wait at the server: at most one a priority. Pure.
//!
//! A message does not say which request it answers. With one request a priority it need not: a priority whose request
//! still waits has no alert, and a request is over when its last message or its status has come.

use std::time::Duration;

use tokio::time::Instant;

use crate::bus::names::Priority;

/// What is asked of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    number: usize,
    left: usize,
    /// When the next sign of life is overdue.
    overdue: Instant,
    patience: Duration,
}

/// The requests by priority.
#[derive(Debug, Default)]
pub(super) struct Requests {
    waiting: [Option<Waiting>; Priority::ALL.len()],
    numbers: usize,
}

impl Requests {
    /// Notes a request for `batch` alerts that shows a sign of life at least every `patience`; returns its number.
    pub(super) fn add(&mut self, priority: Priority, batch: usize, patience: Duration) -> usize {
        let number = self.numbers;
        self.numbers += 1;
        if let Some(waiting) = self.at(priority) {
            *waiting = Some(Waiting { number, left: batch, overdue: Instant::now() + patience, patience });
        }
        number
    }

    /// Whether a request of this priority waits.
    pub(super) fn has(&self, priority: Priority) -> bool {
        self.waiting.get(priority as usize).is_some_and(Option::is_some)
    }

    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.iter().all(Option::is_none)
    }

    /// When the first sign of life is overdue.
    pub(super) fn overdue(&self) -> Option<Instant> {
        self.waiting.iter().flatten().map(|waiting| waiting.overdue).min()
    }

    /// An alert of this priority came.
    pub(super) fn delivered(&mut self, priority: Priority) {
        let Some(slot) = self.at(priority) else { return };
        if let Some(waiting) = slot {
            waiting.left = waiting.left.saturating_sub(1);
            waiting.overdue = Instant::now() + waiting.patience;
        }
        if slot.is_some_and(|waiting| waiting.left == 0) {
            *slot = None;
        }
    }

    /// The server still knows request `number`.
    pub(super) fn alive(&mut self, number: usize) {
        for waiting in self.waiting.iter_mut().flatten().filter(|waiting| waiting.number == number) {
            waiting.overdue = Instant::now() + waiting.patience;
        }
    }

    /// The server has ended request `number`.
    pub(super) fn over(&mut self, number: usize) {
        for slot in &mut self.waiting {
            if slot.is_some_and(|waiting| waiting.number == number) {
                *slot = None;
            }
        }
    }

    /// Nothing is known about any of them.
    pub(super) fn forget(&mut self) {
        self.waiting = Default::default();
    }

    fn at(&mut self, priority: Priority) -> Option<&mut Option<Waiting>> {
        self.waiting.get_mut(priority as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(1);

    #[test]
    fn a_request_is_over_with_its_last_alert_or_its_status() {
        let mut requests = Requests::default();
        let high = requests.add(Priority::High, 2, PATIENCE);
        let low = requests.add(Priority::Low, 1, PATIENCE);
        requests.delivered(Priority::High);
        assert!(requests.has(Priority::High) && requests.has(Priority::Low) && !requests.has(Priority::Normal));
        requests.over(low);
        requests.delivered(Priority::High);
        assert!(requests.is_empty());
        let again = requests.add(Priority::High, 1, PATIENCE);
        requests.over(high);
        assert!(requests.has(Priority::High), "the status of an earlier request ends no later one");
        requests.over(again);
        assert!(requests.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_without_a_sign_of_life_is_overdue() {
        let mut requests = Requests::default();
        assert_eq!(requests.overdue(), None);
        let begun = Instant::now();
        let first = requests.add(Priority::High, 1, PATIENCE);
        requests.add(Priority::Low, 1, 3 * PATIENCE);
        assert_eq!(requests.overdue(), Some(begun + PATIENCE));
        tokio::time::advance(PATIENCE / 2).await;
        requests.alive(first);
        assert_eq!(requests.overdue(), Some(begun + PATIENCE + PATIENCE / 2));
        requests.forget();
        assert_eq!(requests.overdue(), None);
    }
}
