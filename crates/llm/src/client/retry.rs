//! Reports that the LLM service sends a request to the provider again: a log line and a metric.
//!
//! The answer has not begun then. The notice is not a part of the answer and changes no deadline.

use std::time::Duration;

use crate::proto::RetryNotice;

/// Reports one retry of a request to the named provider.
///
/// The message of the notice is not logged: it has the provider's words, which may quote the prompt.
pub(super) fn report(notice: &RetryNotice, request_id: &str, provider: &str) {
    let delay = notice
        .delay
        .and_then(|delay| Duration::try_from(delay).ok())
        .unwrap_or_default();
    // The code comes from the service, and is written into the log of this process.
    let code: String = notice
        .code
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '_')
        .take(64)
        .collect();
    tracing::info!(
        request_id,
        provider,
        attempt = notice.attempt,
        code,
        delay_secs = delay.as_secs_f64(),
        "the LLM service asks the provider again"
    );
    metrics::counter!("tarsy_model_retries_total", "provider" => provider.to_owned()).increment(1);
}
