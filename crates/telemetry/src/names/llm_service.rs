//! The metrics of `tarsy llm-service`.
//!
//! The names that begin with `gen_ai_` are those of OpenTelemetry's semantic conventions 1.43.0 as Prometheus spells
//! them. Later versions keep the conventions for models in a repository of their own. The model is no label, because a
//! request names it freely.

use super::common::CALL_BUCKETS;
use super::metric::{Metric, counter, gauge, seconds, tokens};
use strum::VariantNames;
use tarsy_core::vocabulary::ErrorCode;
use tarsy_core::vocabulary::provider::{GEN_AI_LABELS, LABELS};
use tarsy_engine::trace::gen_ai::{CHAT, FINISH_REASONS};

/// The bounds that the conventions name, and three for thinking models.
const GEN_AI_BUCKETS: &[f64] = &[
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84,
    327.68, 655.36,
];
const TOKEN_BUCKETS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

const BACKENDS: &[&str] = &["google-native", "genai", "scripted", "unknown"];

/// Exported by `tarsy llm-service`. The metrics of the conventions are exported after the first call of a provider.
pub(super) const LLM_SERVICE: &[Metric] = &[
    counter(
        "tarsy_llm_requests_total",
        "requests ended; abandoned: the client disconnected, refused: too many calls of the provider ran",
    )
    .by("backend", BACKENDS)
    .by("outcome", &["answered", "failed", "abandoned", "refused"]),
    seconds("tarsy_llm_request_duration_seconds", CALL_BUCKETS, "from a request to the end of its answer")
        .by("backend", BACKENDS),
    gauge("tarsy_llm_requests_in_flight", "requests in flight").by("provider", &LABELS),
    counter("tarsy_llm_errors_total", "requests without a complete answer, by the code of the error")
        .by("code", ErrorCode::VARIANTS),
    counter("tarsy_llm_retries_total", "requests sent to a provider again").by("provider", &LABELS),
    counter("tarsy_llm_finish_reasons_total", "answers by the reason for their end")
        .by("provider", &LABELS)
        .by("reason", &FINISH_REASONS),
    counter(
        "tarsy_llm_unauthenticated_total",
        "clients refused; token: a call without a valid token, tls: a connection without a TLS handshake",
    )
    .by("lacks", &["token", "tls"]),
    seconds(
        "gen_ai_client_operation_duration_seconds",
        GEN_AI_BUCKETS,
        "from a request to the end of its answer, retries included; without an error, error_type is empty",
    )
    .by("gen_ai_operation_name", &[CHAT])
    .by("gen_ai_provider_name", &GEN_AI_LABELS)
    .by("error_type", &ErrorCode::CLASSES),
    seconds(
        "gen_ai_client_operation_time_to_first_chunk_seconds",
        GEN_AI_BUCKETS,
        "from a request to the first part of its answer, retries included",
    )
    .by("gen_ai_operation_name", &[CHAT])
    .by("gen_ai_provider_name", &GEN_AI_LABELS),
    tokens(
        "gen_ai_client_token_usage",
        TOKEN_BUCKETS,
        "tokens of a request; cached tokens are part of input, thinking tokens of no other type unless the provider \
         counts them as output",
    )
    .by("gen_ai_operation_name", &[CHAT])
    .by("gen_ai_provider_name", &GEN_AI_LABELS)
    .by("gen_ai_token_type", &["input", "output", "cached", "thinking"]),
];
