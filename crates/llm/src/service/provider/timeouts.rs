//! Time-outs for a provider's response: until its first byte, and between two pieces.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::error::{ErrorCode, ProviderError};
use crate::service::call::Deadline;
use tarsy_config::Connection;

/// The limits of one attempt. The deadline of the client limits them further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// The time from the request to the first event of its answer.
    pub first_chunk: Duration,
    /// The time between two events.
    pub stall: Duration,
    /// The time from the request to the end of its answer; `None`: as long as the client waits.
    pub whole: Option<Duration>,
    /// The time from the last event of a complete answer to the end of its response. The answer counts without this
    /// end.
    pub end: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            first_chunk: Connection::FIRST_CHUNK_TIMEOUT,
            stall: Connection::STALL_TIMEOUT,
            whole: None,
            end: Duration::from_secs(5),
        }
    }
}

/// A limit, by the key of the configuration that sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    FirstChunk,
    Stall,
    Whole,
    /// A limit of the program, which no key sets.
    Fixed,
}

impl Limit {
    /// The step that the provider did not do in time, and the setting of the limit.
    fn reason(self) -> &'static str {
        match self {
            Self::FirstChunk => ": the provider sent no part of its answer (first_chunk_timeout)",
            Self::Stall => ": the provider sent no further part of its answer (stall_timeout)",
            Self::Whole => ": the answer had not ended (answer_timeout)",
            Self::Fixed => "",
        }
    }
}

/// A time-out: its duration and its beginning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeout {
    limit: Duration,
    since: Instant,
    kind: Limit,
}

impl Timeout {
    /// A time-out that no key sets.
    pub(crate) fn since(since: Instant, limit: Duration) -> Self {
        Self::set_by(Limit::Fixed, since, limit)
    }

    fn set_by(kind: Limit, since: Instant, limit: Duration) -> Self {
        Self { limit, since, kind }
    }

    fn left(self) -> Duration {
        self.limit.saturating_sub(self.since.elapsed())
    }
}

impl Timeouts {
    /// The time-out for the next part: the first part of an answer (`last` is `None`), or the next one. `began` is the
    /// time of the request.
    pub(crate) fn next_part(self, began: Instant, last: Option<Instant>) -> Timeout {
        let part = match last {
            None => Timeout::set_by(Limit::FirstChunk, began, self.first_chunk),
            Some(last) => Timeout::set_by(Limit::Stall, last, self.stall),
        };
        let Some(whole) = self.whole else { return part };
        let whole = Timeout::set_by(Limit::Whole, began, whole);
        if whole.left() < part.left() {
            whole
        } else {
            part
        }
    }
}

/// Waits for `work`.
///
/// # Errors
/// When the provider is silent for too long or the deadline passes. After a deadline no other attempt makes sense.
pub(crate) async fn within<T>(
    deadline: Deadline,
    silence: Timeout,
    work: impl Future<Output = T>,
) -> Result<T, ProviderError> {
    let Timeout { limit, kind, .. } = silence;
    timeout(deadline.limit(silence.left()), work)
        .await
        .map_err(|_elapsed| {
            if deadline.has_passed() {
                ProviderError::new(
                    ErrorCode::DeadlineExceeded,
                    "Generation timed out: the deadline of the caller passed",
                )
            } else {
                let message = format!("Generation timed out after {limit:?}{}", kind.reason());
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
        let silence = Timeout::since(Instant::now(), limit);
        tokio::time::advance(Duration::from_secs(50)).await;
        let error = within(Deadline::default(), silence, pending::<()>())
            .await
            .unwrap_err();
        assert_eq!(
            (error.retryable, error.message.as_str()),
            (true, "Generation timed out after 120s")
        );
        assert_eq!(silence.since.elapsed(), limit);
        let silence = Timeout::since(Instant::now(), limit);
        let error = within(
            Deadline::after(Duration::from_secs(3)),
            silence,
            pending::<()>(),
        )
        .await
        .unwrap_err();
        assert_eq!(
            (error.retryable, error.code),
            (false, ErrorCode::DeadlineExceeded)
        );
        assert_eq!(
            within(Deadline::default(), silence, async { 7 }).await,
            Ok(7)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_timeout_names_the_key_that_sets_it() {
        let limits = Timeouts {
            first_chunk: Duration::from_secs(5),
            stall: Duration::from_secs(3),
            whole: Some(Duration::from_secs(7)),
            ..Timeouts::default()
        };
        let began = Instant::now();
        let message = async |last| {
            let silence = limits.next_part(began, last);
            within(Deadline::default(), silence, pending::<()>())
                .await
                .unwrap_err()
                .message
        };
        assert!(
            message(None)
                .await
                .contains("5s: the provider sent no part of its answer (first_chunk_timeout)")
        );
        assert!(
            message(Some(Instant::now()))
                .await
                .contains("7s: the answer had not ended (answer_timeout)")
        );
        let began = Instant::now();
        let silence = limits.next_part(began, Some(began));
        let error = within(Deadline::default(), silence, pending::<()>())
            .await
            .unwrap_err();
        assert!(
            error.retryable
                && error
                    .message
                    .contains("3s: the provider sent no further part"),
            "{error}"
        );
    }
}
