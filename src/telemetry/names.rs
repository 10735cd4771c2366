//! Every metric: name, labels with their closed sets of values, unit, buckets, meaning, and which role exports it.
//!
//! Code that counts writes the name out; a test compares it with this table. A label never holds an id, a title or a
//! name that a model chose.

use crate::engine::ports::PRUNED_TABLES;

/// One metric.
#[derive(Debug)]
pub struct Metric {
    /// As scraped.
    pub name: &'static str,
    /// What it is, with what only that kind has.
    pub kind: Kind,
    /// Its labels and every value that they take; `None` for a metric without labels.
    pub label: Option<Label>,
    /// For people.
    pub help: &'static str,
}

/// What a metric is.
#[derive(Debug)]
pub enum Kind {
    /// Only grows; exported as 0 from the start, so that a rate sees the first one.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Seconds, with the upper bounds of its buckets.
    Seconds(&'static [f64]),
}

/// A label, and perhaps a second one.
#[derive(Debug)]
pub struct Label {
    /// Its key.
    pub key: &'static str,
    /// All its values; [`PROVIDERS`] stands for the names of the configured providers.
    pub values: &'static [&'static str],
    /// The second one.
    pub and: Option<(&'static str, &'static [&'static str])>,
}

/// Values that the configuration gives: the names of its LLM providers.
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
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Worker, Self::LlmService, Self::Receive];

    /// What it exports.
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
    /// The keys of its labels, in order.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        let second = self.label.as_ref().and_then(|label| label.and).map(|(key, _)| key);
        self.label.as_ref().map(|label| label.key).into_iter().chain(second)
    }

    const fn by(mut self, key: &'static str, values: &'static [&'static str]) -> Self {
        self.label = match self.label {
            None => Some(Label { key, values, and: None }),
            Some(first) => Some(Label { key: first.key, values: first.values, and: Some((key, values)) }),
        };
        self
    }
}

const fn counter(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, label: None, help }
}

const fn gauge(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, label: None, help }
}

const fn seconds(name: &'static str, buckets: &'static [f64], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Seconds(buckets), label: None, help }
}

const CALL_BUCKETS: &[f64] = &[0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 90.0, 120.0, 180.0, 300.0];
const FIRST_CHUNK_BUCKETS: &[f64] = &[0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0];
const TOOL_BUCKETS: &[f64] = &[0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0];
const STORE_BUCKETS: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];
const SESSION_BUCKETS: &[f64] =
    &[0.1, 0.5, 1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 2400.0, 3600.0, 7200.0];

const PRIORITIES: &[&str] = &["critical", "high", "normal", "low"];
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

/// Of every role.
const COMMON: &[Metric] = &[
    gauge("tarsy_build_info", "always 1; the version of this program").by("version", &[env!("CARGO_PKG_VERSION")]),
    counter("process_cpu_seconds_total", "processor time of this process, user and system"),
    counter("tarsy_connections_refused_total", "connections that were closed because there were too many")
        .by("listener", &["alerts", "metrics", "llm"])
        .by("how", &["refused", "evicted"]),
    gauge("process_resident_memory_bytes", "memory of this process that is in RAM"),
    gauge("process_open_fds", "open file descriptors of this process"),
    gauge("process_max_fds", "file descriptors that this process may open"),
    gauge("process_start_time_seconds", "when this process started, in Unix seconds"),
];

/// Of every role that talks to NATS.
const NATS: &[Metric] = &[counter("tarsy_nats_reconnects_total", "connections to NATS after the first one")];

/// Of `tarsy worker`.
const WORKER: &[Metric] = &[
    counter("tarsy_alerts_received_total", "deliveries taken from the stream of alerts, redeliveries included")
        .by("priority", PRIORITIES),
    counter("tarsy_dead_letters_total", "alerts given up").by("reason", DEAD_REASONS),
    counter("tarsy_sessions_opened_total", "investigations begun"),
    counter("tarsy_sessions_resumed_total", "investigations taken over from a worker that is gone or handed them back"),
    counter(
        "tarsy_alerts_joined_total",
        "alerts that an open session took along, or that one answers for that completed within the cooldown",
    )
    .by("reason", &["open", "cooldown"]),
    counter("tarsy_tool_server_waits_total", "times that an alert was put back because an MCP server was unavailable"),
    counter("tarsy_sessions_without_tools_total", "investigations begun without an MCP server that was unavailable"),
    counter("tarsy_sessions_released_total", "investigations released for another worker to go on with").by(
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
    counter("tarsy_forged_events_total", "timeline messages that no worker has published, ignored"),
    counter(
        "tarsy_lost_commits_total",
        "sessions of which the database had lost commits, as the timeline stream shows",
    ),
    counter(
        "tarsy_returns_counted_total",
        "investigations released so often for their own doing that it was an attempt",
    )
    .by("reason", &["model_broke", "store_refused"]),
    counter(
        "tarsy_sessions_lost_total",
        "investigations that another worker took over while this one had not handed them back",
    ),
    counter("tarsy_rows_pruned_total", "rows that were deleted because of their age").by("table", &PRUNED_TABLES),
    counter("tarsy_sweeps_total", "things that nobody took care of and that a sweep has done")
        .by("found", &["overdue", "requeued", "settled"]),
    seconds(
        "tarsy_drain_duration_seconds",
        TOOL_BUCKETS,
        "from the signal to stop until the last session was released",
    ),
    gauge("tarsy_draining", "1 while this worker lets its last calls finish and hands its sessions back"),
    counter("tarsy_sessions_finished_total", "investigations ended")
        .by("status", &["completed", "failed", "cancelled", "timed_out"]),
    seconds("tarsy_session_wait_seconds", SESSION_BUCKETS, "from the stream's taking of an alert to its investigation"),
    seconds("tarsy_session_duration_seconds", SESSION_BUCKETS, "from the opening of an investigation to its end"),
    gauge("tarsy_sessions_running", "investigations that this worker owns now"),
    gauge("tarsy_settling", "ended investigations and placed alerts of which this worker still publishes something"),
    gauge("tarsy_timeline_available", "1 while the timeline stream takes events; investigations go on without it"),
    gauge("tarsy_worker_slots", "investigations that this worker can own at once"),
    gauge("tarsy_worker_slot_utilization_ratio", "running investigations to slots, 0 to 1"),
    gauge("tarsy_queue_pending", "alerts that nobody has taken yet; the same from every worker")
        .by("priority", PRIORITIES),
    gauge("tarsy_queue_in_progress", "alerts that a worker has taken and not settled; the same from every worker")
        .by("priority", PRIORITIES),
    gauge("tarsy_queue_oldest_alert_age_seconds", "age of the oldest alert that is not settled, 0 without one")
        .by("priority", PRIORITIES),
    gauge("tarsy_queue_poll_timestamp_seconds", "when this worker last saw the queue, in Unix seconds"),
    counter("tarsy_claim_stalls_total", "times that claiming began anew because alerts waited beside free slots"),
    counter("tarsy_writes_refused_total", "writes that the fence refused because another worker owns the session")
        .by("statement", REFUSABLE),
    seconds("tarsy_iteration_duration_seconds", CALL_BUCKETS, "of a model call with the tool calls that it asked for"),
    counter("tarsy_model_calls_total", "model calls ended")
        .by("provider", PROVIDERS)
        .by("outcome", &["answered", "failed", "unavailable"]),
    seconds(
        "tarsy_model_call_duration_seconds",
        CALL_BUCKETS,
        "from the request to the end of the answer or the failure",
    )
    .by("provider", PROVIDERS),
    seconds(
        "tarsy_model_first_chunk_seconds",
        FIRST_CHUNK_BUCKETS,
        "from the request to the first piece of the answer",
    )
    .by("provider", PROVIDERS),
    counter("tarsy_model_tokens_total", "tokens of answered model calls; cached ones are part of input")
        .by("provider", PROVIDERS)
        .by("direction", &["input", "cached", "output", "thinking"]),
    counter("tarsy_model_answers_too_large_total", "answers that were left because they have more than one may have"),
    counter("tarsy_tool_calls_not_run_total", "calls that a model asked for and that were not sent")
        .by("reason", &["too_many", "no_time"]),
    counter(
        "tarsy_context_elisions_total",
        "times that a conversation was too long and its oldest tool results left out",
    ),
    counter("tarsy_tool_calls_total", "tool calls ended").by("outcome", &["done", "failed", "lost"]),
    seconds("tarsy_tool_call_duration_seconds", TOOL_BUCKETS, "from the request to the result or the failure"),
    seconds("tarsy_checkpoint_duration_seconds", STORE_BUCKETS, "until a checkpoint was committed, retries included"),
    counter("tarsy_events_published_total", "timeline events that the stream has acknowledged"),
    seconds(
        "tarsy_event_publish_duration_seconds",
        STORE_BUCKETS,
        "until the stream has acknowledged a timeline event",
    ),
    gauge("tarsy_db_pool_in_use", "database connections in use, of the pool that sessions share"),
    gauge("tarsy_db_pool_waiting", "statements that wait for a database connection"),
];

/// Of `tarsy llm-service`.
const LLM_SERVICE: &[Metric] = &[
    counter("tarsy_llm_requests_total", "requests ended; abandoned: the client went away")
        .by("backend", BACKENDS)
        .by("outcome", &["answered", "failed", "abandoned"]),
    seconds("tarsy_llm_request_duration_seconds", CALL_BUCKETS, "from a request to the end of its answer")
        .by("backend", BACKENDS),
    gauge("tarsy_llm_requests_in_flight", "requests that are being answered"),
];

/// Of `tarsy receive`.
const RECEIVE: &[Metric] = &[
    counter("tarsy_receive_requests_total", "requests answered, by the class of the status code")
        .by("path", &["alertmanager", "grafana", "alert", "other"])
        .by("code", &["2xx", "4xx", "5xx"]),
    seconds("tarsy_receive_request_duration_seconds", TOOL_BUCKETS, "from the head of a request to its answer"),
    gauge("tarsy_receive_connections", "open connections"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ports::DeadReason;

    #[test]
    fn every_reason_for_a_dead_letter_is_counted() {
        assert_eq!(DEAD_REASONS, DeadReason::ALL.map(DeadReason::as_str));
    }

    #[test]
    fn a_role_exports_no_metric_twice_and_none_is_forgotten() {
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
