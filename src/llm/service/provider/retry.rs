//! Repeats a request to a provider, as long as nothing of its answer was sent.
//!
//! Rate limits, server errors, timeouts and lost connections are repeated after the delay that the provider asks for,
//! or after a back-off with jitter. No attempt begins after the deadline of the client, and nothing waits after the
//! last one. The beginnings of the messages are those of the existing service, because its clients may look at them.

use std::time::Duration;

use super::error::{ErrorCode, ProviderError};
use crate::engine::backoff::Backoff;
use crate::llm::proto::RetryNotice;
use crate::llm::service::call::Call;

/// Also the number in the message of an exhausted request.
const MAX_ATTEMPTS: u32 = 3;
const BACKOFF: Backoff = Backoff { first: Duration::from_secs(1), max: Duration::from_secs(8) };
/// A client that is asked to wait longer gets the error with the delay, and can wait by itself.
const MAX_DELAY: Duration = Duration::from_secs(120);

/// A request that can be sent several times.
pub(in crate::llm::service) trait Attempt {
    /// Sends the request once and writes its answer, up to but not including the final message.
    fn run(&mut self, call: &Call<'_>) -> impl Future<Output = Result<(), ProviderError>> + Send;
}

/// Makes the attempts of a call and ends its stream.
pub(in crate::llm::service) async fn run(call: &Call<'_>, attempt: &mut (impl Attempt + Send)) {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let Err(error) = attempt.run(call).await else {
            return call.writer.end().await;
        };
        let error = ProviderError { attempts, ..error };
        let delay = match delay(call, &error) {
            Some(delay) => delay,
            None => return call.writer.fail(explained(call, error)).await,
        };
        tracing::warn!(
            request_id = call.request.request_id,
            attempt = attempts,
            code = error.code.as_str(),
            provider_status = error.provider_status,
            delay_ms = delay.as_millis(),
            "model call repeated: the provider failed before its first chunk"
        );
        call.writer.retry(notice(&error, delay)).await;
        tokio::time::sleep(delay).await;
    }
}

/// How long to wait for the next attempt; `None` if there is none.
fn delay(call: &Call<'_>, error: &ProviderError) -> Option<Duration> {
    if !error.retryable || error.attempts >= MAX_ATTEMPTS || call.writer.parts_sent() > 0 {
        return None;
    }
    let delay = error.retry_after.unwrap_or_else(|| BACKOFF.delay(error.attempts.saturating_sub(1)));
    (delay <= MAX_DELAY && call.deadline.allows(delay)).then_some(delay)
}

fn notice(error: &ProviderError, delay: Duration) -> RetryNotice {
    RetryNotice {
        attempt: error.attempts,
        code: error.code.as_str().to_owned(),
        message: error.message.clone(),
        delay: delay.try_into().ok(),
    }
}

/// The last error with the words of the existing service before its message.
fn explained(call: &Call<'_>, error: ProviderError) -> ProviderError {
    let sent = call.writer.parts_sent();
    let message = match &error.message {
        message if sent > 0 => format!("Stream failed after partial output ({sent} chunks): {message}"),
        message if error.retryable && error.attempts >= MAX_ATTEMPTS => {
            format!("Generation failed after {MAX_ATTEMPTS} retries: {message}")
        }
        message => format!("Generation failed: {message}"),
    };
    tracing::warn!(
        request_id = call.request.request_id,
        attempts = error.attempts,
        code = error.code.as_str(),
        provider_status = error.provider_status,
        parts_sent = sent,
        "model call failed"
    );
    if sent > 0 {
        let retryable = error.code != ErrorCode::DeadlineExceeded || error.retryable;
        return ProviderError { code: ErrorCode::PartialStream, retryable, message, ..error };
    }
    ProviderError { message, ..error }
}
