//! A call to the LLM service: the request, its deadline and the stream of its answer.

use std::time::Duration;

use tokio::time::Instant;
use tonic::metadata::MetadataMap;

use super::provider::ProviderError;
use super::writer::ResponseWriter;
use crate::proto::{GenerateRequest, LlmConfig};

/// The header in which a gRPC client sends how long it waits.
const TIMEOUT_HEADER: &str = "grpc-timeout";
/// Reserved for the way of the last message to the client.
const MAX_MARGIN: Duration = Duration::from_millis(500);
/// The part of the timeout that is reserved at most.
const MARGIN_DIVISOR: u32 = 20;

/// A call that a backend answers.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub request: &'a GenerateRequest,
    pub deadline: Deadline,
    pub writer: &'a ResponseWriter,
}

impl<'a> Call<'a> {
    /// The provider and the model of the request.
    ///
    /// # Errors
    /// `invalid_request` when the request names none.
    pub(super) fn config(&self) -> Result<&'a LlmConfig, ProviderError> {
        let config = self.request.llm_config.as_ref();
        config.ok_or_else(|| ProviderError::invalid_request("llm_config is missing"))
    }

    /// Logs the tools that the request is sent without, and the reason; nothing without any.
    pub(super) fn log_left_out(&self, tools: &str) {
        if !tools.is_empty() {
            tracing::warn!(
                request_id = self.request.request_id,
                tools,
                "tools left out of a model call"
            );
        }
    }
}

/// The time until which the client waits for the answer; `None` if it sent no timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// Reads the timeout of a request, and reserves some of it for the last message.
    pub(super) fn from_metadata(metadata: &MetadataMap) -> Self {
        let header = metadata.get(TIMEOUT_HEADER);
        let header = header.and_then(|value| value.to_str().ok());
        header
            .and_then(timeout)
            .map(Self::after)
            .unwrap_or_default()
    }

    /// The deadline of a client that waits this long from now.
    pub fn after(timeout: Duration) -> Self {
        let margin = (timeout / MARGIN_DIVISOR).min(MAX_MARGIN);
        Self(Instant::now().checked_add(timeout.saturating_sub(margin)))
    }

    /// Whether the deadline comes after this much time from now.
    pub(super) fn allows(self, time: Duration) -> bool {
        self.0
            .is_none_or(|at| at.saturating_duration_since(Instant::now()) > time)
    }

    /// `limit`, or the time that is left if that is less.
    pub(super) fn limit(self, limit: Duration) -> Duration {
        self.0.map_or(limit, |at| {
            at.saturating_duration_since(Instant::now()).min(limit)
        })
    }

    pub(super) fn has_passed(self) -> bool {
        self.0.is_some_and(|at| at <= Instant::now())
    }
}

/// A timeout as gRPC writes it: up to eight digits and a unit.
fn timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let is_number =
        (1..=8).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let value: u64 = is_number.then(|| digits.parse().ok())??;
    match unit {
        "H" => Some(Duration::from_secs(value * 3600)),
        "M" => Some(Duration::from_secs(value * 60)),
        "S" => Some(Duration::from_secs(value)),
        "m" => Some(Duration::from_millis(value)),
        "u" => Some(Duration::from_micros(value)),
        "n" => Some(Duration::from_nanos(value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_of_a_client_is_read_in_every_unit() {
        for (text, millis) in [
            ("2H", 7_200_000),
            ("3M", 180_000),
            ("20S", 20_000),
            ("5m", 5),
            ("300000u", 300),
        ] {
            assert_eq!(timeout(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "S", "5", "-5S", "+5S", "123456789S", "5é", "5s"] {
            assert_eq!(timeout(text), None, "{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_of_the_timeout_is_left_for_the_last_message() {
        let mut metadata = MetadataMap::new();
        assert_eq!(Deadline::from_metadata(&metadata), Deadline(None));
        metadata.insert(TIMEOUT_HEADER, "4S".parse().unwrap());
        let deadline = Deadline::from_metadata(&metadata);
        assert_eq!(
            deadline.limit(Duration::from_secs(9)),
            Duration::from_millis(3_800)
        );
        assert!(
            deadline.allows(Duration::from_secs(3))
                && !deadline.allows(Duration::from_millis(3_800))
        );
        assert_eq!(
            Deadline::after(Duration::from_secs(60)).limit(Duration::MAX),
            Duration::from_millis(59_500)
        );
        tokio::time::advance(Duration::from_secs(4)).await;
        assert!(deadline.has_passed() && deadline.limit(Duration::from_secs(9)).is_zero());
        assert!(Deadline::default().allows(Duration::MAX) && !Deadline::default().has_passed());
    }
}
