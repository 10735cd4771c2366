//! Retries a request to a provider, as long as no part of its answer was sent.
//!
//! Rate limits, server errors, timeouts and lost connections are repeated after the delay that the provider asks for,
//! or after a back-off with jitter. No attempt begins after the deadline of the client, and nothing waits after the
//! last one. The beginnings of the messages are those of the existing service, because its clients may look at them.

use std::time::Duration;

use tracing::{Instrument as _, Span};

use super::echo::{FAILED, FAILED_LATE, without_conversation};
use super::error::{ErrorCode, ProviderError};
use super::key::ApiKey;
use crate::proto::{GenerateRequest, RetryNotice};
use crate::service::call::Call;
use crate::service::labels::ProviderLabel;
use tarsy_engine::backoff::Backoff;
use tarsy_engine::trace::{self, gen_ai};

/// The message of an exhausted request has this number, too.
const MAX_ATTEMPTS: u32 = 3;
const BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(1),
    max: Duration::from_secs(8),
};
/// A client that is asked to wait longer gets the error with the delay, and can wait by itself.
const MAX_DELAY: Duration = Duration::from_secs(120);

/// The former answers that a request repeats with their signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signatures {
    /// Every answer whose signatures the model should accept.
    Replayed,
    /// None, because the model refused them.
    Rebuilt,
}

/// A request that can be sent several times.
pub(crate) trait Attempt {
    /// Sends the request once and writes its answer, up to but not including the final message.
    fn run(&mut self, call: &Call<'_>) -> impl Future<Output = Result<(), ProviderError>> + Send;

    /// Builds the history anew without signatures. `None`: the request has no signature, or only such a history.
    fn rebuild_history(&mut self) -> Option<Result<(), ProviderError>>;

    /// The key of the request, which may be in no word of a failure.
    fn key(&self) -> Option<&ApiKey>;
}

/// Makes the attempts of a call and ends its stream. `attempt` is the failure of a request that could not be prepared.
pub(crate) async fn run(call: &Call<'_>, attempt: Result<impl Attempt + Send, ProviderError>) {
    let mut attempt = match attempt {
        Ok(attempt) => attempt,
        Err(error) => return call.writer.fail(error).await,
    };
    let mut attempts = 0;
    loop {
        attempts += 1;
        let span = span(call.request, attempts);
        let Err(error) = run_once(call, &mut attempt).instrument(span.clone()).await else {
            // The span has the time of the attempt alone, and not that of a slow client.
            drop(span);
            return call.writer.end().await;
        };
        trace::fail(&span, error.code.as_str());
        drop(span);
        // A provider may repeat the key or the prompt in its error, which goes to the client and into the log.
        let error = match attempt.key() {
            Some(key) => without_key(error, key),
            None => error,
        };
        let error = without_conversation(ProviderError { attempts, ..error }, call.request);
        let Some(delay) = delay(call, &error) else {
            return call.writer.fail(explained(call, error)).await;
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

fn span(request: &GenerateRequest, attempt: u32) -> Span {
    gen_ai::provider_attempt(
        ProviderLabel::from_request(request).gen_ai,
        request.model(),
        attempt,
    )
}

/// One attempt. If the provider refuses the signatures of the history, a second request without them belongs to it.
async fn run_once(
    call: &Call<'_>,
    attempt: &mut (impl Attempt + Send),
) -> Result<(), ProviderError> {
    let refused = match attempt.run(call).await {
        Err(error)
            if error.code == ErrorCode::ThoughtSignature && call.writer.parts_sent() == 0 =>
        {
            error
        }
        outcome => return outcome,
    };
    let Some(rebuilt) = attempt.rebuild_history() else {
        return Err(refused);
    };
    tracing::warn!(
        request_id = call.request.request_id,
        provider_status = refused.provider_status,
        "history rebuilt: the provider refused its thought signatures"
    );
    rebuilt?;
    attempt.run(call).await
}

/// The failure without the key, which a provider may repeat in every field of its answer.
pub fn without_key(error: ProviderError, key: &ApiKey) -> ProviderError {
    ProviderError {
        message: key.redact(&error.message),
        provider_status: key.redact(&error.provider_status),
        ..error
    }
}

/// Returns the delay before the next attempt; `None` if the call is not repeated.
fn delay(call: &Call<'_>, error: &ProviderError) -> Option<Duration> {
    if !error.retryable || error.attempts >= MAX_ATTEMPTS || call.writer.parts_sent() > 0 {
        return None;
    }
    let delay = error
        .retry_after
        .unwrap_or_else(|| BACKOFF.delay(error.attempts.saturating_sub(1)));
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

/// The last error with the words of the existing service before its message. The id in brackets is also in the log.
fn explained(call: &Call<'_>, error: ProviderError) -> ProviderError {
    let sent = call.writer.parts_sent();
    let id = format!("{:08x}", fastrand::u32(..));
    tracing::warn!(
        request_id = call.request.request_id,
        failure_id = id,
        attempts = error.attempts,
        code = error.code.as_str(),
        provider_status = error.provider_status,
        parts_sent = sent,
        "model call failed"
    );
    let text = &error.message;
    let message = match (sent, error.retryable) {
        (1.., _) => format!("{FAILED_LATE} ({sent} chunks): [{id}] {text}"),
        (0, true) if error.attempts >= MAX_ATTEMPTS => {
            format!("{FAILED} after {MAX_ATTEMPTS} attempts: [{id}] {text}")
        }
        (0, true) => format!("{FAILED}: [{id}] {text}"),
        (0, false) => format!("{FAILED}: {text}"),
    };
    // A failure that another attempt would meet again keeps its code, because it says more.
    let code = if sent > 0 && error.retryable {
        ErrorCode::PartialStream
    } else {
        error.code
    };
    ProviderError {
        code,
        message,
        ..error
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use tokio::sync::mpsc;
    use tokio::time::Instant;

    use super::*;
    use crate::proto::generate_response::Content;
    use crate::proto::{ACCEPT_CODES, ACCEPT_RETRY, GenerateRequest, GenerateResponse, TextDelta};
    use crate::service::call::Deadline;
    use crate::service::writer::ResponseWriter;

    /// Writes a text for each `Ok`, and returns each error.
    struct Script {
        steps: VecDeque<Result<&'static str, ProviderError>>,
        rebuilds: VecDeque<Result<(), ProviderError>>,
    }

    impl Attempt for Script {
        async fn run(&mut self, call: &Call<'_>) -> Result<(), ProviderError> {
            while let Some(step) = self.steps.pop_front() {
                let content = step?.to_owned();
                call.writer
                    .content(Content::Text(TextDelta { content }))
                    .await;
            }
            Ok(())
        }

        fn rebuild_history(&mut self) -> Option<Result<(), ProviderError>> {
            self.rebuilds.pop_front()
        }

        fn key(&self) -> Option<&ApiKey> {
            None
        }
    }

    fn overloaded() -> Result<&'static str, ProviderError> {
        Err(ProviderError::transient(ErrorCode::Unavailable, "busy").with_status("503 UNAVAILABLE"))
    }

    fn limited(seconds: u64) -> Result<&'static str, ProviderError> {
        let error = ProviderError::transient(ErrorCode::RateLimited, "slow down");
        Err(ProviderError {
            retry_after: Some(Duration::from_secs(seconds)),
            ..error
        })
    }

    /// The answer as text, and the seconds that it took. The id of a failure becomes `[id]`.
    async fn play(
        script: Vec<Result<&'static str, ProviderError>>,
        deadline: Deadline,
    ) -> (Vec<String>, f64) {
        let (sender, mut receiver) = mpsc::channel(32);
        let writer = ResponseWriter::new(sender, &[ACCEPT_CODES, ACCEPT_RETRY].map(str::to_owned));
        let request = GenerateRequest::default();
        let began = Instant::now();
        let script = Script {
            steps: script.into(),
            rebuilds: [Ok(())].into(),
        };
        run(
            &Call {
                request: &request,
                deadline,
                writer: &writer,
            },
            Ok(script),
        )
        .await;
        drop(writer);
        let mut shown = Vec::new();
        while let Some(Ok(GenerateResponse { content, is_final })) = receiver.recv().await {
            shown.push(match content {
                Some(Content::Text(text)) => text.content,
                Some(Content::Retry(notice)) => format!("retry {} {}", notice.attempt, notice.code),
                Some(Content::Error(error)) => {
                    let message = match error.message.split_once('[') {
                        Some((start, end)) => format!("{start}[id{}", end.get(8..).unwrap()),
                        None => error.message,
                    };
                    format!(
                        "{} {} {} {message}",
                        error.code, error.retryable, error.attempts
                    )
                }
                None if is_final => "end".to_owned(),
                other => format!("{other:?}"),
            });
        }
        (shown, began.elapsed().as_secs_f64())
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_is_repeated_twice_and_nothing_waits_after_the_last_attempt() {
        let (shown, took) = play(
            vec![overloaded(), overloaded(), Ok("x")],
            Deadline::default(),
        )
        .await;
        assert_eq!(
            shown,
            ["retry 1 unavailable", "retry 2 unavailable", "x", "end"]
        );
        assert!((1.4..=3.1).contains(&took), "{took}");
        let (shown, took) = play(
            vec![overloaded(), overloaded(), overloaded(), Ok("x")],
            Deadline::default(),
        )
        .await;
        assert_eq!(
            shown[2],
            "unavailable true 3 Generation failed after 3 attempts: [id] busy"
        );
        assert!((1.4..=3.1).contains(&took), "{took}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_history_with_refused_signatures_is_rebuilt_once_and_costs_no_attempt() {
        let refused = || Err(ProviderError::new(ErrorCode::ThoughtSignature, "corrupted"));
        let (shown, took) = play(vec![refused(), Ok("x")], Deadline::default()).await;
        assert_eq!(shown, ["x", "end"]);
        assert!(took < 0.1, "{took}");
        let (shown, _) = play(vec![refused(), overloaded(), Ok("x")], Deadline::default()).await;
        assert_eq!(shown, ["retry 1 unavailable", "x", "end"]);
        let (shown, _) = play(vec![refused(), refused(), Ok("x")], Deadline::default()).await;
        let code = ErrorCode::ThoughtSignature.as_str();
        assert_eq!(
            shown,
            [format!("{code} false 1 Generation failed: corrupted")]
        );
        let (shown, _) = play(vec![Ok("x"), refused(), Ok("y")], Deadline::default()).await;
        assert!(
            shown.len() == 2 && shown[1].ends_with("corrupted"),
            "{shown:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_delay_of_the_provider_counts_unless_it_passes_the_deadline() {
        let (shown, took) = play(vec![limited(30), Ok("x")], Deadline::default()).await;
        assert_eq!(shown, ["retry 1 rate_limited", "x", "end"]);
        assert!((29.9..=30.1).contains(&took), "{took}");
        for (delay, deadline) in [
            (30, Deadline::after(Duration::from_secs(20))),
            (3_600, Deadline::default()),
        ] {
            let (shown, took) = play(vec![limited(delay), Ok("x")], deadline).await;
            assert_eq!(
                shown,
                ["rate_limited true 1 Generation failed: [id] slow down"]
            );
            assert!(took < 0.1, "{took}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_is_not_repeated_after_a_part_of_its_answer_or_in_vain() {
        let (shown, _) = play(vec![Ok("x"), overloaded(), Ok("y")], Deadline::default()).await;
        let partial =
            "partial_stream_error true 1 Stream failed after partial output (1 chunks): [id] busy";
        assert_eq!(shown, ["x", partial]);
        let refused = || Err(ProviderError::new(ErrorCode::Blocked, "no"));
        let (shown, _) = play(vec![refused(), Ok("y")], Deadline::default()).await;
        assert_eq!(shown, ["blocked false 1 Generation failed: no"]);
        let (shown, _) = play(vec![Ok("x"), refused()], Deadline::default()).await;
        assert_eq!(
            shown[1],
            "blocked false 1 Stream failed after partial output (1 chunks): [id] no"
        );
    }
}
