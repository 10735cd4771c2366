//! Decides whether and when a failed model call is retried.
//!
//! A delay is no entry of the journal: nothing is decided by it, and a worker that dies meanwhile leaves the journal as
//! it was. The next owner then asks again at once, or after the back-off of the failures in the journal.

use std::time::Duration;

use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::ports::ModelError;
use tarsy_core::vocabulary::ErrorCode;

/// The time between failed model calls in a row.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(1),
    max: Duration::from_secs(30),
};

/// The delay before the iteration that follows `failures` failed ones: the back-off, or longer until `retry_at`, the
/// instant that the provider named. At most `longest`.
pub(super) fn delay_before_iteration(
    failures: u32,
    retry_at: Option<Instant>,
    longest: Duration,
) -> Duration {
    let requested = retry_at.map_or(Duration::ZERO, |at| {
        at.saturating_duration_since(Instant::now())
    });
    BACKOFF
        .delay(failures.saturating_sub(1))
        .max(requested)
        .min(longest)
}

/// The delay after which a call is repeated within its iteration, so that its failure costs none: after a rate limit,
/// or if the provider named a delay. At least half of the `remaining` time of the iteration is left for the answer.
pub(super) fn delay_within_iteration(
    error: &ModelError,
    waits: u32,
    remaining: Duration,
) -> Option<Duration> {
    let ModelError::Failed { code, provider, .. } = error else {
        return None;
    };
    if !provider.retryable
        || (ErrorCode::parse(code) != ErrorCode::RateLimited && provider.retry_after.is_none())
    {
        return None;
    }
    let delay = BACKOFF
        .delay(waits)
        .max(provider.retry_after.unwrap_or_default());
    (delay <= remaining / 2).then_some(delay)
}

/// The delay that the provider named in a failure.
pub(super) fn requested_delay(error: &ModelError) -> Option<Duration> {
    let ModelError::Failed { provider, .. } = error else {
        return None;
    };
    provider.retry_after
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::ProviderFailure;

    const SECOND: Duration = Duration::from_secs(1);

    fn failed(code: &str, provider: ProviderFailure) -> ModelError {
        ModelError::Failed {
            code: code.to_owned(),
            message: String::new(),
            timeout: false,
            provider,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_delay_before_an_iteration_doubles_and_is_as_long_as_the_provider_asks() {
        for (failures, ceiling) in [(0, 1), (1, 1), (2, 2), (4, 8), (9, 30)] {
            let delay = delay_before_iteration(failures, None, 60 * SECOND);
            assert!(
                delay >= ceiling * SECOND / 2 && delay <= ceiling * SECOND,
                "{failures}: {delay:?}"
            );
        }
        let at = |secs: u32| Some(Instant::now() + secs * SECOND);
        assert_eq!(delay_before_iteration(1, at(40), 60 * SECOND), 40 * SECOND);
        assert_eq!(delay_before_iteration(1, at(400), 60 * SECOND), 60 * SECOND);
        assert!(delay_before_iteration(1, at(0), 60 * SECOND) <= SECOND);
    }

    #[test]
    fn a_call_is_repeated_in_its_iteration_while_half_of_its_time_is_left() {
        let limited = |secs| ProviderFailure {
            retryable: true,
            retry_after: secs,
            ..ProviderFailure::default()
        };
        let asking = |secs: u32| limited(Some(secs * SECOND));
        for (code, provider, expected) in [
            ("rate_limited", asking(50), Some(50 * SECOND)),
            ("rate_limited", asking(51), None),
            ("unavailable", asking(7), Some(7 * SECOND)),
            ("unavailable", limited(None), None),
            (
                "rate_limited",
                ProviderFailure {
                    retryable: false,
                    ..asking(7)
                },
                None,
            ),
        ] {
            assert_eq!(
                delay_within_iteration(&failed(code, provider), 0, 100 * SECOND),
                expected,
                "{code}"
            );
        }
        let unnamed =
            delay_within_iteration(&failed("rate_limited", limited(None)), 3, 100 * SECOND)
                .unwrap();
        assert!(
            unnamed >= 4 * SECOND && unnamed <= 8 * SECOND,
            "{unnamed:?}"
        );
        assert_eq!(
            delay_within_iteration(&ModelError::Broke(String::new()), 0, 100 * SECOND),
            None
        );
    }
}
