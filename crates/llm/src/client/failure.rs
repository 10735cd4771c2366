//! Classifies a failed call: the service was unavailable (the session is released) or the call failed (a failed
//! iteration).
//!
//! Unavailable means no connection, or UNAVAILABLE, `RESOURCE_EXHAUSTED` or UNAUTHENTICATED before the first chunk.
//! A connection that is lost before the first chunk is a separate case, because this call may have crashed the
//! service. Every other error is a failure.

use std::error::Error as _;
use std::time::Duration;

use tonic::{Code, ConnectError, Status, TimeoutExpired};

use super::check::{connect_fault, sources};
use crate::proto::{ErrorInfo, MAX_ANSWER_BYTES};
use tarsy_core::vocabulary::ErrorCode;
use tarsy_engine::ports::{ModelError, ProviderFailure};

/// The error code of a request over the limit of the service.
const LARGE_REQUEST_CODE: &str = "request_too_large";

/// A longer delay is cut to this one.
const MAX_RETRY_AFTER: Duration = Duration::from_hours(24);

/// The start of the transport's message when a message exceeds the limit of its receiver, which is the end of it.
const LARGE_CHUNK_MESSAGE: &str = "Error, decoded message length too large";

pub(super) fn before_first_chunk(status: &Status) -> ModelError {
    if let Some(failure) = over_limit(status) {
        return failure;
    }
    // A status with a source comes from the local transport: the service has not answered.
    match (status.source(), status.code()) {
        (Some(_), _) if !is_unconnected(status) && connect_fault(status).is_none() => {
            ModelError::Broke(describe(status))
        }
        // A wrong token is a fault of the settings: a session is not to fail for it.
        (Some(_), _)
        | (None, Code::Unavailable | Code::ResourceExhausted | Code::Unauthenticated) => {
            ModelError::Unavailable(describe(status))
        }
        (None, code) => failed(word(code), describe(status)),
    }
}

pub(super) fn after_first_chunk(status: &Status) -> ModelError {
    over_limit(status).unwrap_or_else(|| {
        let message = format!(
            "llm stream broke after partial output: {}",
            describe(status)
        );
        failed(ErrorCode::PartialStream.as_str(), message)
    })
}

/// The failure of a call whose answer is too large or too late.
fn over_limit(status: &Status) -> Option<ModelError> {
    if is_large(status) {
        let is_ours = status
            .message()
            .ends_with(&format!("the limit is: {MAX_ANSWER_BYTES} bytes"));
        return Some(if is_ours {
            too_large("32 MiB in all")
        } else {
            let message = format!("the service refuses the request: {}", status.message());
            failed(LARGE_REQUEST_CODE, message)
        });
    }
    is_timeout(status).then(|| failed(ErrorCode::DeadlineExceeded.as_str(), describe(status)))
}

pub(super) fn no_final_chunk() -> ModelError {
    failed(
        ErrorCode::PartialStream.as_str(),
        "llm stream ended without its final chunk".to_owned(),
    )
}

pub(super) fn timed_out(limit: Duration) -> ModelError {
    failed(
        ErrorCode::DeadlineExceeded.as_str(),
        format!("llm call gave no whole answer within {limit:?}"),
    )
}

fn is_large(status: &Status) -> bool {
    status.code() == Code::OutOfRange && status.message().starts_with(LARGE_CHUNK_MESSAGE)
}

/// Codes of failures that meet the same request again, among those that the client itself reports.
const PERMANENT: [&str; 7] = [
    LARGE_REQUEST_CODE,
    "invalid_argument",
    "not_found",
    "permission_denied",
    "failed_precondition",
    "out_of_range",
    "unimplemented",
];

/// A failed call; its code shows whether it timed out and whether it may succeed later.
pub(super) fn failed(code: &str, message: String) -> ModelError {
    let kind = ErrorCode::parse(code);
    ModelError::Failed {
        code: code.to_owned(),
        message,
        timeout: kind == ErrorCode::DeadlineExceeded,
        provider: ProviderFailure {
            retryable: kind != ErrorCode::AnswerTooLarge && !PERMANENT.contains(&code),
            ..ProviderFailure::default()
        },
    }
}

/// The failure that the service reports in place of an answer; its texts have no NUL.
pub(super) fn reported(error: ErrorInfo) -> ModelError {
    let delay = error
        .retry_after
        .and_then(|delay| Duration::try_from(delay).ok());
    ModelError::Failed {
        timeout: ErrorCode::parse(&error.code) == ErrorCode::DeadlineExceeded,
        code: error.code,
        message: error.message,
        provider: ProviderFailure {
            status: error.provider_status,
            retryable: error.retryable,
            retry_after: delay.map(|delay| delay.min(MAX_RETRY_AFTER)),
        },
    }
}

/// The error of an answer that exceeds `limit`.
pub(super) fn too_large(limit: &str) -> ModelError {
    metrics::counter!("tarsy_model_answers_too_large_total").increment(1);
    failed(
        ErrorCode::AnswerTooLarge.as_str(),
        format!("the answer is too large: at most {limit}"),
    )
}

/// Whether the client could not connect, so that the call never reached the service.
fn is_unconnected(status: &Status) -> bool {
    sources(status).any(|error| error.is::<ConnectError>())
}

/// Whether a status is a time-out. Both transports enforce the deadline of the call: their status is CANCELLED with
/// this source.
fn is_timeout(status: &Status) -> bool {
    status.code() == Code::DeadlineExceeded
        || sources(status).any(|error| error.is::<TimeoutExpired>())
}

/// The status and its innermost source, because `transport error` alone does not name the cause.
fn describe(status: &Status) -> String {
    let code = word(status.code());
    let message = status.message();
    match sources(status).last().map(ToString::to_string) {
        Some(root) if !message.contains(&root) => format!("{code}: {message}: {root}"),
        Some(_) | None => format!("{code}: {message}"),
    }
}

fn word(code: Code) -> &'static str {
    match code {
        Code::Ok => "ok",
        Code::Cancelled => "cancelled",
        Code::Unknown => "unknown",
        Code::InvalidArgument => "invalid_argument",
        Code::DeadlineExceeded => ErrorCode::DeadlineExceeded.as_str(),
        Code::NotFound => "not_found",
        Code::AlreadyExists => "already_exists",
        Code::PermissionDenied => "permission_denied",
        Code::ResourceExhausted => "resource_exhausted",
        Code::FailedPrecondition => "failed_precondition",
        Code::Aborted => "aborted",
        Code::OutOfRange => "out_of_range",
        Code::Unimplemented => "unimplemented",
        Code::Internal => "internal",
        Code::Unavailable => "unavailable",
        Code::DataLoss => "data_loss",
        Code::Unauthenticated => "unauthenticated",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The status that tonic builds when a connection is lost.
    fn lost_connection() -> Status {
        Status::from_error(Box::new(std::io::Error::other("connection reset")))
    }

    #[test]
    fn before_the_first_chunk_an_overloaded_service_is_unavailable() {
        for status in [
            Status::unavailable("draining"),
            Status::resource_exhausted("full"),
        ] {
            assert!(
                matches!(before_first_chunk(&status), ModelError::Unavailable(_)),
                "{status}"
            );
        }
        assert!(matches!(
            before_first_chunk(&lost_connection()),
            ModelError::Broke(_)
        ));
        assert_eq!(
            before_first_chunk(&Status::unimplemented("no such method")),
            failed("unimplemented", "unimplemented: no such method".to_owned())
        );
        assert_eq!(
            before_first_chunk(&Status::deadline_exceeded("too slow")),
            failed(
                ErrorCode::DeadlineExceeded.as_str(),
                "deadline_exceeded: too slow".to_owned()
            )
        );
    }

    #[test]
    fn the_words_of_a_provider_are_kept_with_its_failure() {
        let info = |delay: u64| ErrorInfo {
            message: "too many requests".to_owned(),
            code: "rate_limited".to_owned(),
            retryable: true,
            retry_after: Duration::from_secs(delay).try_into().ok(),
            provider_status: "429 RESOURCE_EXHAUSTED".to_owned(),
            attempts: 3,
        };
        let failed = |delay| ModelError::Failed {
            code: "rate_limited".to_owned(),
            message: "too many requests".to_owned(),
            timeout: false,
            provider: ProviderFailure {
                status: "429 RESOURCE_EXHAUSTED".to_owned(),
                retryable: true,
                retry_after: Some(delay),
            },
        };
        assert_eq!(reported(info(22)), failed(Duration::from_secs(22)));
        assert_eq!(reported(info(u64::MAX / 4)), failed(MAX_RETRY_AFTER));
        let plain = ErrorInfo {
            code: ErrorCode::DeadlineExceeded.as_str().to_owned(),
            ..ErrorInfo::default()
        };
        assert!(matches!(
            reported(plain),
            ModelError::Failed { timeout: true, .. }
        ));
    }

    #[test]
    fn after_the_first_chunk_a_broken_stream_is_a_failure() {
        for status in [
            Status::unavailable("x"),
            Status::resource_exhausted("x"),
            lost_connection(),
        ] {
            let error = after_first_chunk(&status);
            assert!(
                matches!(&error, ModelError::Failed { code, timeout: false, .. } if code == "partial_stream_error"),
                "{error:?}"
            );
        }
        assert!(matches!(
            after_first_chunk(&Status::deadline_exceeded("x")),
            ModelError::Failed { timeout: true, .. }
        ));
    }
}
