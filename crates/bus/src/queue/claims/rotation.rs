//! Weighted round robin over the priorities: which one is asked next, and for how many alerts. Pure.

use crate::names::Priority;

/// One slot in so many goes to the lowest priority that has alerts, so that a flood of critical alerts starves no
/// other.
const LOWEST_FIRST_INTERVAL: u64 = 8;

/// Counts the slots that were granted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PriorityRotation {
    granted: u64,
}

/// The priorities to ask, in this order, for at most `max_alerts` in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Round {
    pub(super) order: [Priority; 4],
    pub(super) max_alerts: usize,
}

impl PriorityRotation {
    /// The next round with `free` slots.
    pub(super) fn next(self, free: usize) -> Round {
        let position = self.granted % LOWEST_FIRST_INTERVAL;
        let until_lowest = LOWEST_FIRST_INTERVAL - 1 - position;
        let mut order = Priority::ALL;
        if until_lowest == 0 {
            order.reverse();
        }
        let most = usize::try_from(until_lowest.max(1)).unwrap_or(usize::MAX);
        Round {
            order,
            max_alerts: free.min(most),
        }
    }

    /// Counts a slot that was granted to an alert.
    pub(super) fn granted(&mut self) {
        self.granted = self.granted.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_eight_slots_seven_go_to_the_highest_and_one_to_the_lowest() {
        let mut rotation = PriorityRotation::default();
        let mut first = Vec::new();
        for _ in 0..16 {
            let round = rotation.next(1);
            assert_eq!(round.max_alerts, 1);
            first.push(round.order[0]);
            rotation.granted();
        }
        let mut expected = vec![Priority::Critical; 7];
        expected.push(Priority::Low);
        assert_eq!(first, [expected.clone(), expected].concat());
    }

    #[test]
    fn a_round_ends_where_the_lowest_priority_goes_first() {
        let mut rotation = PriorityRotation::default();
        assert_eq!(rotation.next(100).max_alerts, 7);
        rotation.granted();
        rotation.granted();
        let [many, few, none] = [100, 3, 0].map(|free| rotation.next(free).max_alerts);
        assert_eq!([many, few, none], [5, 3, 0]);
    }
}
