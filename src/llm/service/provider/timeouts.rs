//! How long a provider may be silent.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::error::{ErrorCode, ProviderError};
use crate::llm::service::call::Deadline;

/// The limits of one attempt. The deadline of the client limits them further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From the request to the first event of its answer.
    pub first_chunk: Duration,
    /// Between two events.
    pub stall: Duration,
    /// From the last event of a complete answer to the end of its response. The answer counts without this end.
    pub end: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { first_chunk: Duration::from_secs(120), stall: Duration::from_secs(60), end: Duration::from_secs(5) }
    }
}

/// How long to wait, from when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silence {
    limit: Duration,
    since: Instant,
}

impl Silence {
    pub(crate) fn since(since: Instant, limit: Duration) -> Self {
        Self { limit, since }
    }
}

/// Waits for `work`.
///
/// # Errors
/// When the provider is silent for too long or the deadline passes. After a deadline no other attempt makes sense.
pub(crate) async fn within<T>(
    deadline: Deadline,
    silence: Silence,
    work: impl Future<Output = T>,
) -> Result<T, ProviderError> {
    let Silence { limit, since } = silence;
    let left = limit.saturating_sub(since.elapsed());
    timeout(deadline.limit(left), work).await.map_err(|_elapsed| {
        if deadline.has_passed() {
            ProviderError::new(ErrorCode::DeadlineExceeded, "Generation timed out: the deadline of the caller passed")
        } else {
            let message = format!("Generation timed out after {limit:?}");
            ProviderError::transient(ErrorCode::DeadlineExceeded, message)
        }
    })
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_a_timeout_before_the_deadline_can_be_retried() {
        let limit = Duration::from_secs(120);
        let silence = Silence::since(Instant::now(), limit);
        tokio::time::advance(Duration::from_secs(50)).await;
        let error = within(Deadline::default(), silence, pending::<()>()).await.unwrap_err();
        assert_eq!((error.retryable, error.message.as_str()), (true, "Generation timed out after 120s"));
        assert_eq!(silence.since.elapsed(), limit);
        let silence = Silence::since(Instant::now(), limit);
        let error = within(Deadline::after(Duration::from_secs(3)), silence, pending::<()>()).await.unwrap_err();
        assert_eq!((error.retryable, error.code), (false, ErrorCode::DeadlineExceeded));
        assert_eq!(within(Deadline::default(), silence, async { 7 }).await, Ok(7));
    }
}
