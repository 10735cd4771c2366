//! The table of all metrics: name, labels with every value, kind, buckets, help, and the roles that export it.
//!
//! Code that counts uses the literal name; a test compares it with this table. A label value is never an id, a title
//! or a name that a model chose.
//!
//! The names that begin with `gen_ai_` are those of OpenTelemetry's semantic conventions 1.43.0 as Prometheus spells
//! them. Later versions keep the conventions for models in a repository of their own. The model is no label, because a
//! request names it freely.

use super::label_values::{FINISH_REASONS, GEN_AI_OPERATIONS, GEN_AI_PROVIDERS, LLM_ERRORS, PROVIDER_WORDS};
use crate::engine::ports::PRUNED_TABLES;

/// One metric.
#[derive(Debug)]
pub struct Metric {
    pub name: &'static str,
    pub kind: Kind,
    pub labels: [Option<Label>; 3],
    pub help: &'static str,
}

/// The kind of a metric.
#[derive(Debug)]
pub enum Kind {
    /// Exported as 0 from the start, so that a rate sees the first increment.
    Counter,
    Gauge,
    /// A histogram of seconds with the upper bounds of its buckets.
    Seconds(&'static [f64]),
    /// A histogram of tokens with the upper bounds of its buckets.
    Tokens(&'static [f64]),
}

/// A label of a metric.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    pub key: &'static str,
    /// All values; [`PROVIDERS`] stands for the names of the configured providers.
    pub values: &'static [&'static str],
}

/// The values are the names of the LLM providers in the configuration.
pub const PROVIDERS: &[&str] = &[];

/// A role that exports metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// `tarsy worker`.
    Worker,
    /// `tarsy llm-service`.
    LlmService,
    /// `tarsy receive`.
    Receive,
}

impl Role {
    pub const ALL: [Self; 3] = [Self::Worker, Self::LlmService, Self::Receive];

    /// The metrics that this role exports.
    pub fn metrics(self) -> impl Iterator<Item = &'static Metric> {
        let own = match self {
            Self::Worker => [WORKER, NATS],
            Self::LlmService => [LLM_SERVICE, &[]],
            Self::Receive => [RECEIVE, NATS],
        };
        own.into_iter().flatten().chain(COMMON)
    }
}

/// All metrics, each once.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    [COMMON, WORKER, NATS, LLM_SERVICE, RECEIVE].into_iter().flatten()
}

impl Metric {
    /// The keys of the labels, in order.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.labels.iter().flatten().map(|label| label.key)
    }

    const fn by(mut self, key: &'static str, values: &'static [&'static str]) -> Self {
        let label = Some(Label { key, values });
        self.labels = match self.labels {
            [None, _, _] => [label, None, None],
            [first, None, _] => [first, label, None],
            [first, second, _] => [first, second, label],
        };
        self
    }
}

const fn counter(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, labels: [None; 3], help }
}

const fn gauge(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, labels: [None; 3], help }
}

const fn seconds(name: &'static str, buckets: &'static [f64], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Seconds(buckets), labels: [None; 3], help }
}

const fn tokens(name: &'static str, buckets: &'static [f64], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Tokens(buckets), labels: [None; 3], help }
}

const CALL_BUCKETS: &[f64] = &[0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 90.0, 120.0, 180.0, 300.0];
const FIRST_CHUNK_BUCKETS: &[f64] = &[0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0];
const TOOL_BUCKETS: &[f64] = &[0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0];
const STORE_BUCKETS: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];
const SESSION_BUCKETS: &[f64] =
    &[0.1, 0.5, 1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 2400.0, 3600.0, 7200.0];

/// The bounds that the conventions name, and three for thinking models.
const GEN_AI_BUCKETS: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68, 655.36];
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

const PRIORITIES: &[&str] = &["critical", "high", "normal", "low"];
const FALLBACK_CODES: &[&str] = &[
    "max_retries",
    "unavailable",
    "rate_limited",
    "empty_response",
    "malformed_tool_call",
    "credentials",
    "invalid_backend",
    "invalid_request",
    "model_not_found",
    "blocked",
    "thought_signature",
    "empty",
    "provider_error",
    "internal",
    "partial_stream_error",
    "deadline_exceeded",
    "timeout",
    "max_tokens",
    "answer_too_large",
    "context_window_exceeded",
    "other",
];
const REFUSABLE: &[&str] = &["checkpoint", "step", "finish", "renew"];
const DEAD_REASONS: &[&str] = &[
    "undecodable",
    "empty",
    "too_large",
    "used_id",
    "invalid_id",
    "unknown_chain",
    "invalid_parent",
    "attempts_exhausted",
];
const BACKENDS: &[&str] = &["google-native", "genai", "scripted", "unknown"];
/// Exported by every role.
const COMMON: &[Metric] = &[
    gauge("tarsy_build_info", "always 1; the version is a label").by("version", &[env!("CARGO_PKG_VERSION")]),
    counter("process_cpu_seconds_total", "CPU time of this process, user and system"),
    counter(
        "tarsy_connections_refused_total",
        "connections closed because of a connection limit; refused: the new one, evicted: an idle one",
    )
    .by("listener", &["alerts", "metrics", "llm"])
    .by("how", &["refused", "evicted"]),
    gauge("process_resident_memory_bytes", "resident memory of this process"),
    gauge("process_open_fds", "open file descriptors of this process"),
    gauge("process_max_fds", "maximum number of open file descriptors"),
    gauge("process_start_time_seconds", "start time of this process in Unix seconds"),
];

/// Exported by every role with a connection to NATS.
const NATS: &[Metric] = &[counter("tarsy_nats_reconnects_total", "reconnects to NATS")];

/// Exported by `tarsy worker`.
const WORKER: &[Metric] = &[
    counter("tarsy_alerts_received_total", "messages claimed from the alert stream, redeliveries included")
        .by("priority", PRIORITIES),
    counter("tarsy_dead_letters_total", "alerts published as dead letters").by("reason", DEAD_REASONS),
    counter("tarsy_sessions_opened_total", "sessions opened"),
    counter("tarsy_sessions_resumed_total", "sessions resumed after their worker died or released them"),
    counter("tarsy_alerts_joined_total", "alerts joined to an existing session, by reason (open, cooldown)")
        .by("reason", &["open", "cooldown"]),
    counter(
        "tarsy_tool_server_waits_total",
        "times that an alert went back to the queue because an MCP server was unavailable",
    ),
    counter("tarsy_sessions_without_tools_total", "sessions opened without the tools of an unavailable MCP server"),
    counter("tarsy_sessions_released_total", "sessions released for another worker").by(
        "reason",
        &[
            "drain",
            "model_unavailable",
            "model_broke",
            "store_refused",
            "store_unavailable",
            "store_behind",
            "incompatible",
        ],
    ),
    counter("tarsy_forged_events_total", "timeline messages without a valid seal of a worker, ignored"),
    counter("tarsy_lost_commits_total", "sessions whose commits the database had lost, as the timeline stream shows"),
    counter(
        "tarsy_returns_counted_total",
        "releases that counted as an attempt because the session itself caused them repeatedly",
    )
    .by("reason", &["model_broke", "store_refused"]),
    counter("tarsy_sessions_lost_total", "sessions that another worker took over before this one had released them"),
    counter("tarsy_rows_pruned_total", "rows deleted because of their age").by("table", &PRUNED_TABLES),
    counter("tarsy_sweeps_total", "orphaned items recovered by the sweeper, by kind")
        .by("found", &["overdue", "requeued", "settled"]),
    seconds("tarsy_drain_duration_seconds", TOOL_BUCKETS, "from the stop signal to the release of the last session"),
    gauge("tarsy_draining", "1 while this worker finishes its last calls and releases its sessions"),
    counter("tarsy_sessions_finished_total", "sessions ended")
        .by("status", &["completed", "failed", "cancelled", "timed_out"]),
    seconds(
        "tarsy_session_wait_seconds",
        SESSION_BUCKETS,
        "from the publication of an alert to the opening of its session",
    ),
    seconds("tarsy_session_duration_seconds", SESSION_BUCKETS, "from the opening of a session to its end"),
    gauge("tarsy_sessions_running", "sessions that this worker runs now"),
    gauge("tarsy_settling", "ended sessions and placed alerts whose settlement this worker has not finished"),
    gauge("tarsy_timeline_available", "1 while the timeline stream accepts events; sessions continue without it"),
    gauge("tarsy_worker_slots", "sessions that this worker can run at the same time"),
    gauge("tarsy_worker_slot_utilization_ratio", "running sessions divided by slots, 0 to 1"),
    gauge("tarsy_queue_pending", "alerts that no worker has claimed yet; every worker exports the same value")
        .by("priority", PRIORITIES),
    gauge("tarsy_queue_in_progress", "alerts that are claimed and not settled; every worker exports the same value")
        .by("priority", PRIORITIES),
    gauge("tarsy_queue_oldest_alert_age_seconds", "age of the oldest unsettled alert, 0 if there is none")
        .by("priority", PRIORITIES),
    gauge(
        "tarsy_queue_poll_timestamp_seconds",
        "time of the last successful queue poll of this worker in Unix seconds",
    ),
    counter("tarsy_claim_stalls_total", "restarts of the claim loop because alerts waited while slots were free"),
    counter("tarsy_writes_refused_total", "writes refused by the fence because another worker owns the session")
        .by("statement", REFUSABLE),
    seconds(
        "tarsy_iteration_duration_seconds",
        CALL_BUCKETS,
        "duration of an iteration: a model call and its tool calls",
    ),
    counter("tarsy_model_calls_total", "model calls ended, by outcome")
        .by("provider", PROVIDERS)
        .by("outcome", &["answered", "failed", "unavailable"]),
    seconds(
        "tarsy_model_call_duration_seconds",
        CALL_BUCKETS,
        "from the request to the end of the answer or to the failure",
    )
    .by("provider", PROVIDERS),
    seconds(
        "tarsy_model_first_chunk_seconds",
        FIRST_CHUNK_BUCKETS,
        "from the request to the first chunk of the answer",
    )
    .by("provider", PROVIDERS),
    counter("tarsy_model_tokens_total", "tokens of answered model calls; cached tokens are part of input")
        .by("provider", PROVIDERS)
        .by("direction", &["input", "cached", "output", "thinking"]),
    counter(
        "tarsy_provider_fallbacks_total",
        "switches from a provider that has failed to the next one of its agent, by the error code",
    )
    .by("provider", PROVIDERS)
    .by("code", FALLBACK_CODES),
    counter("tarsy_model_retries_total", "requests that the LLM service sent to a provider again")
        .by("provider", PROVIDERS),
    counter("tarsy_model_answers_too_large_total", "model answers dropped because they exceed a size limit"),
    counter("tarsy_tool_calls_not_run_total", "tool calls requested by a model and not sent")
        .by("reason", &["too_many", "no_time"]),
    counter(
        "tarsy_context_elisions_total",
        "times that the oldest tool results were left out because a conversation was too long",
    ),
    counter("tarsy_tool_calls_total", "tool calls ended").by("outcome", &["done", "failed", "lost"]),
    counter("tarsy_tool_argument_checks_total", "tool calls whose arguments were compared with the schema of the tool")
        .by("outcome", &["fit", "unfit", "unchecked"]),
    counter("tarsy_tool_result_summaries_total", "long tool results that a model was asked to summarise")
        .by("outcome", &["done", "failed"]),
    seconds("tarsy_tool_call_duration_seconds", TOOL_BUCKETS, "from the request to the result or to the failure"),
    seconds("tarsy_checkpoint_duration_seconds", STORE_BUCKETS, "time to commit a checkpoint, retries included"),
    counter("tarsy_events_published_total", "timeline events acknowledged by the stream"),
    seconds(
        "tarsy_event_publish_duration_seconds",
        STORE_BUCKETS,
        "time until the stream acknowledged a timeline event",
    ),
    gauge("tarsy_db_pool_in_use", "database connections in use, of the pool that sessions share"),
    gauge("tarsy_db_pool_waiting", "statements waiting for a database connection"),
];

/// Exported by `tarsy llm-service`. The metrics of the conventions are exported after the first call of a provider.
const LLM_SERVICE: &[Metric] = &[
    counter(
        "tarsy_llm_requests_total",
        "requests ended; abandoned: the client disconnected, refused: too many calls of the provider ran",
    )
    .by("backend", BACKENDS)
    .by("outcome", &["answered", "failed", "abandoned", "refused"]),
    seconds("tarsy_llm_request_duration_seconds", CALL_BUCKETS, "from a request to the end of its answer")
        .by("backend", BACKENDS),
    gauge("tarsy_llm_requests_in_flight", "requests in flight").by("provider", PROVIDER_WORDS),
    counter("tarsy_llm_errors_total", "requests without a complete answer, by the code of the error")
        .by("code", LLM_ERRORS),
    counter("tarsy_llm_retries_total", "requests sent to a provider again").by("provider", PROVIDER_WORDS),
    counter("tarsy_llm_finish_reasons_total", "answers by the reason for their end")
        .by("provider", PROVIDER_WORDS)
        .by("reason", FINISH_REASONS),
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
    .by("gen_ai_operation_name", GEN_AI_OPERATIONS)
    .by("gen_ai_provider_name", GEN_AI_PROVIDERS)
    .by("error_type", LLM_ERRORS),
    seconds(
        "gen_ai_client_operation_time_to_first_chunk_seconds",
        GEN_AI_BUCKETS,
        "from a request to the first part of its answer, retries included",
    )
    .by("gen_ai_operation_name", GEN_AI_OPERATIONS)
    .by("gen_ai_provider_name", GEN_AI_PROVIDERS),
    tokens(
        "gen_ai_client_token_usage",
        TOKEN_BUCKETS,
        "tokens of a request; cached tokens are part of input, thinking tokens of no other type unless the provider \
         counts them as output",
    )
    .by("gen_ai_operation_name", GEN_AI_OPERATIONS)
    .by("gen_ai_provider_name", GEN_AI_PROVIDERS)
    .by("gen_ai_token_type", &["input", "output", "cached", "thinking"]),
];

/// Exported by `tarsy receive`.
const RECEIVE: &[Metric] = &[
    counter("tarsy_receive_requests_total", "requests answered, by the class of the status code")
        .by("path", &["alertmanager", "grafana", "alert", "other"])
        .by("code", &["2xx", "4xx", "5xx"]),
    seconds("tarsy_receive_request_duration_seconds", TOOL_BUCKETS, "from the head of a request to its response"),
    gauge("tarsy_receive_connections", "open connections"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ports::DeadReason;
    use crate::investigation::execution::fallback;

    #[test]
    fn every_reason_for_a_dead_letter_is_a_label_value() {
        assert_eq!(DEAD_REASONS, DeadReason::ALL.map(DeadReason::as_str));
    }

    #[test]
    fn every_error_code_of_a_fallback_is_a_label_value() {
        assert!(FALLBACK_CODES.iter().copied().eq(fallback::codes().chain([fallback::OTHER])));
    }

    #[test]
    fn every_metric_is_exported_by_some_role_and_by_no_role_twice() {
        let mut names: Vec<&str> = all().map(|metric| metric.name).collect();
        names.sort_unstable();
        let exported = Role::ALL.into_iter().flat_map(|role| {
            let mut names: Vec<&str> = role.metrics().map(|metric| metric.name).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{role:?}");
            names
        });
        let mut exported: Vec<&str> = exported.collect();
        exported.sort_unstable();
        exported.dedup();
        assert_eq!(exported, names);
    }
}
