//! Counts the attempts of an iteration's model call.
//!
//! A try is no entry: a write before each model call would cost as much as the call's own checkpoint, and no decision
//! depends on it. The number follows from the timeline instead, which has an event for each claim of the session.

use crate::ports::RecordedAttempts;
use tarsy_core::execution::decide::{Decision, decide};
use tarsy_core::execution::state::State;

/// Numbers the tries of an execution's model calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attempts {
    recorded: RecordedAttempts,
    /// The iteration whose model call an earlier owner may have made.
    open: Option<u32>,
}

impl Attempts {
    /// The tries before this run, which has to continue from this state. Only if a model call is next, earlier owners
    /// may have made it.
    pub(super) fn new(state: &State, recorded: RecordedAttempts) -> Self {
        let is_open = matches!(decide(state), Decision::CallModel(_));
        Self {
            recorded,
            open: is_open.then(|| state.iteration() + 1),
        }
    }

    /// The number of this run's first try of an iteration, from 1. Each earlier owner that had the iteration to do
    /// counts as one try, although it may have died before its call. Events of an iteration that is yet to come belong
    /// to steps that a database has lost: that one was tried, too.
    pub(super) fn first(&self, iteration: u32) -> u32 {
        let claims = if Some(iteration) == self.open {
            self.recorded.claims
        } else {
            0
        };
        match self.recorded.by_iteration.get(&iteration) {
            Some(lost) => lost + claims.max(1),
            None => 1 + claims,
        }
    }

    /// The attempt that an iteration's answer came from.
    pub(super) fn count(&self, iteration: u32) -> u32 {
        self.recorded
            .by_iteration
            .get(&iteration)
            .copied()
            .unwrap_or(1)
    }

    /// Records that this attempt has ended the iteration's model call.
    pub(super) fn record(&mut self, iteration: u32, attempt: u32) {
        self.recorded.by_iteration.insert(iteration, attempt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempts(iteration: u32, claims: u32, by_iteration: &[(u32, u32)]) -> Attempts {
        let recorded = RecordedAttempts {
            claims,
            by_iteration: by_iteration.iter().copied().collect(),
        };
        Attempts {
            recorded,
            open: Some(iteration + 1),
        }
    }

    #[test]
    fn each_claim_of_an_open_iteration_is_a_try_and_the_next_begins_at_one() {
        for claims in 0..3 {
            let resumed = attempts(2, claims, &[(1, 1), (2, 4)]);
            assert_eq!(
                [2, 3, 4].map(|iteration| resumed.count(iteration)),
                [4, 1, 1]
            );
            assert_eq!(
                [3, 4].map(|iteration| resumed.first(iteration)),
                [1 + claims, 1]
            );
        }
    }

    #[test]
    fn an_iteration_whose_steps_were_lost_is_tried_again() {
        let recovered = attempts(2, 1, &[(1, 1), (2, 1), (3, 2), (4, 1)]);
        assert_eq!(
            [3, 4, 5].map(|iteration| recovered.first(iteration)),
            [3, 2, 1]
        );
        let claimed_twice = attempts(2, 2, &[(3, 2)]);
        assert_eq!(claimed_twice.first(3), 4);
    }

    #[test]
    fn the_results_of_an_answer_have_its_attempt() {
        let mut attempts = attempts(0, 2, &[]);
        assert_eq!(attempts.first(1), 3);
        attempts.record(1, 5);
        assert_eq!((attempts.count(1), attempts.first(2)), (5, 1));
    }
}
