//! Exponential back-off with jitter: the delays between the attempts of one operation.

use std::time::Duration;

/// Delays that double from `first` to `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    pub first: Duration,
    pub max: Duration,
}

impl Backoff {
    /// The longest delay after `failures` earlier failures in a row: `first` for 0.
    pub(crate) fn ceiling(self, failures: u32) -> Duration {
        self.first
            .saturating_mul(2_u32.saturating_pow(failures))
            .min(self.max)
    }

    /// A random delay between half of the ceiling and the ceiling, so that many clients do not retry at one instant.
    pub fn delay(self, failures: u32) -> Duration {
        self.ceiling(failures)
            .mul_f64(fastrand::f64().mul_add(0.5, 0.5))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_doubles_to_its_maximum_and_varies_by_half() {
        let backoff = Backoff {
            first: Duration::from_secs(1),
            max: Duration::from_secs(5),
        };
        for (failures, ceiling) in [(0, 1), (1, 2), (2, 4), (3, 5), (u32::MAX, 5)] {
            let ceiling = Duration::from_secs(ceiling);
            assert_eq!(backoff.ceiling(failures), ceiling);
            let delay = backoff.delay(failures);
            assert!(
                delay >= ceiling / 2 && delay <= ceiling,
                "{failures}: {delay:?}"
            );
        }
    }
}
