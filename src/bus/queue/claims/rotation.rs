//! Which priority is asked next, and for how many alerts. Pure.

use crate::bus::names::Priority;

/// One slot in so many goes to the lowest priority that has work, so that a flood of critical alerts starves nobody.
const LOW_TURN_EVERY: u64 = 8;

/// Counts the slots that were given unavailable.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turns {
    given: u64,
}

/// Whom to ask, in this order, for at most so many in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) order: [Priority; 4],
    pub(super) most: usize,
}

impl Turns {
    /// The next turn with `free` slots.
    pub(super) fn next(self, free: usize) -> Turn {
        let in_round = self.given % LOW_TURN_EVERY;
        let mut order = Priority::ALL;
        if in_round == LOW_TURN_EVERY - 1 {
            order.reverse();
            return Turn { order, most: free.min(1) };
        }
        let until_low_turn = usize::try_from(LOW_TURN_EVERY - 1 - in_round).unwrap_or(usize::MAX);
        Turn { order, most: free.min(until_low_turn) }
    }

    /// A slot was given unavailable.
    pub(super) fn gave_one(&mut self) {
        self.given = self.given.wrapping_add(1);
    }
}

/// How many of `free` slots `priority` may take when `reserved` of them are kept for critical alerts.
pub(super) fn allowed(priority: Priority, free: usize, reserved: usize) -> usize {
    match priority {
        Priority::Critical => free,
        Priority::High | Priority::Normal | Priority::Low => free.saturating_sub(reserved),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_eight_slots_seven_go_to_the_highest_and_one_to_the_lowest() {
        let mut turns = Turns::default();
        let mut first = Vec::new();
        for _ in 0..16 {
            let turn = turns.next(1);
            assert_eq!(turn.most, 1);
            first.push(turn.order[0]);
            turns.gave_one();
        }
        let mut expected = vec![Priority::Critical; 7];
        expected.push(Priority::Low);
        assert_eq!(first, [expected.clone(), expected].concat());
    }

    #[test]
    fn a_turn_ends_where_the_low_turn_begins() {
        let mut turns = Turns::default();
        assert_eq!(turns.next(100).most, 7);
        turns.gave_one();
        turns.gave_one();
        assert_eq!((turns.next(100).most, turns.next(3).most, turns.next(0).most), (5, 3, 0));
    }

    #[test]
    fn reserved_slots_are_for_critical_alerts() {
        assert_eq!(allowed(Priority::Critical, 2, 2), 2);
        assert_eq!(allowed(Priority::High, 2, 2), 0);
        assert_eq!(allowed(Priority::Low, 5, 2), 3);
    }
}
