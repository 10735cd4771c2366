//! Counts each request by its outcome, and measures its answer.
//!
//! The metrics that begin with `gen_ai_` are those of OpenTelemetry's conventions. Every backend has them, because the
//! [`ResponseWriter`] observes them.

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tracing::Span;

use super::labels::{ProviderLabel, error_class};
use super::writer::ResponseWriter;
use crate::proto::UsageInfo;
use tarsy_engine::trace;
use tarsy_engine::trace::gen_ai::CHAT;

/// A request in flight. Dropping it counts the request as ended.
#[derive(Debug)]
pub(super) struct CountedRequest {
    pub(super) writer: ResponseWriter,
    backend: &'static str,
    provider: ProviderLabel,
    began: Instant,
    _permit: OwnedSemaphorePermit,
}

/// Counts a request that is refused because too many calls of its provider run.
pub(super) fn count_refused(backend: Option<&'static str>) {
    let backend = backend.unwrap_or("unknown");
    metrics::counter!("tarsy_llm_requests_total", "backend" => backend, "outcome" => "refused")
        .increment(1);
}

impl CountedRequest {
    /// `backend` is the name of an existing backend; `None` represents any other name that a client sent.
    pub(super) fn begin(
        writer: ResponseWriter,
        backend: Option<&'static str>,
        provider: ProviderLabel,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        metrics::gauge!("tarsy_llm_requests_in_flight", "provider" => provider.word).increment(1);
        Self {
            writer,
            backend: backend.unwrap_or("unknown"),
            provider,
            began: Instant::now(),
            _permit: permit,
        }
    }

    /// The type of the error that ended the answer; empty if it was answered.
    fn error(&self, outcome: &'static str) -> &'static str {
        match outcome {
            "answered" => "",
            "failed" => self
                .writer
                .observed()
                .error
                .get()
                .copied()
                .unwrap_or("other"),
            outcome => outcome,
        }
    }

    /// Adds the error that ended the answer to the span of the call.
    pub(super) fn mark_failure(&self, span: &Span) {
        let error = self.error(self.writer.outcome().unwrap_or("abandoned"));
        if !error.is_empty() {
            trace::fail(span, error);
        }
    }

    /// The metrics of the answer.
    fn measure(&self, outcome: &'static str) {
        let provider = self.provider;
        let observed = self.writer.observed();
        let error = self.error(outcome);
        metrics::histogram!(
            "gen_ai_client_operation_duration_seconds",
            "gen_ai_operation_name" => CHAT, "gen_ai_provider_name" => provider.gen_ai,
            "error_type" => error_class(error)
        )
        .record(self.began.elapsed().as_secs_f64());
        if !error.is_empty() {
            metrics::counter!("tarsy_llm_errors_total", "code" => error).increment(1);
        }
        if let Some(first) = observed.first_chunk.get() {
            metrics::histogram!(
                "gen_ai_client_operation_time_to_first_chunk_seconds",
                "gen_ai_operation_name" => CHAT, "gen_ai_provider_name" => provider.gen_ai
            )
            .record(first.duration_since(self.began).as_secs_f64());
        }
        if let Some(reason) = observed.finish.get() {
            metrics::counter!("tarsy_llm_finish_reasons_total", "provider" => provider.word, "reason" => *reason)
                .increment(1);
        }
        if let Some(usage) = observed.usage() {
            measure_tokens(provider, &usage);
        }
    }
}

fn measure_tokens(provider: ProviderLabel, usage: &UsageInfo) {
    let types = [
        ("input", usage.input_tokens),
        ("output", usage.output_tokens),
        ("cached", usage.cache_read_tokens),
        ("thinking", usage.thinking_tokens),
    ];
    for (kind, tokens) in types {
        // A model that has no cache, or does not think, has no series for it.
        if tokens <= 0 && !matches!(kind, "input" | "output") {
            continue;
        }
        metrics::histogram!(
            "gen_ai_client_token_usage",
            "gen_ai_operation_name" => CHAT, "gen_ai_provider_name" => provider.gen_ai,
            "gen_ai_token_type" => kind
        )
        .record(f64::from(tokens.max(0)));
    }
}

impl Drop for CountedRequest {
    fn drop(&mut self) {
        let backend = self.backend;
        let provider = self.provider.word;
        let outcome = self.writer.outcome().unwrap_or("abandoned");
        metrics::gauge!("tarsy_llm_requests_in_flight", "provider" => provider).decrement(1);
        metrics::counter!("tarsy_llm_requests_total", "backend" => backend, "outcome" => outcome)
            .increment(1);
        metrics::histogram!("tarsy_llm_request_duration_seconds", "backend" => backend)
            .record(self.began.elapsed().as_secs_f64());
        metrics::counter!("tarsy_llm_retries_total", "provider" => provider)
            .increment(self.writer.observed().retries().into());
        self.measure(outcome);
    }
}
