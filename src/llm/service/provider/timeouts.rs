//! How long a provider may be silent.

use std::time::Duration;

use tokio::time::timeout;

use super::error::{ErrorCode, ProviderError};
use crate::llm::service::call::Deadline;

/// The limits of one attempt. The deadline of the client limits them further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From the request to the first event of its answer.
    pub first_chunk: Duration,
    /// Between two events.
    pub stall: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { first_chunk: Duration::from_secs(120), stall: Duration::from_secs(60) }
    }
}

/// Waits for `work`.
///
/// # Errors
/// When `limit` or the deadline passes first. After a deadline no other attempt makes sense.
pub(in crate::llm::service) async fn within<T>(
    deadline: Deadline,
    limit: Duration,
    work: impl Future<Output = T>,
) -> Result<T, ProviderError> {
    timeout(deadline.limit(limit), work).await.map_err(|_elapsed| {
        if deadline.has_passed() {
            ProviderError::new(ErrorCode::DeadlineExceeded, "Generation timed out: the deadline of the caller passed")
        } else {
            let message = format!("Generation timed out after {:?}", limit);
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
        let error = within(Deadline::default(), limit, pending::<()>()).await.unwrap_err();
        assert_eq!((error.retryable, error.message.as_str()), (true, "Generation timed out after 120s"));
        let error = within(Deadline::after(Duration::from_secs(3)), limit, pending::<()>()).await.unwrap_err();
        assert_eq!((error.retryable, error.code), (false, ErrorCode::DeadlineExceeded));
        assert_eq!(within(Deadline::default(), limit, async { 7 }).await, Ok(7));
    }
}
