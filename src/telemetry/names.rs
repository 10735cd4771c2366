//! Every metric: name, labels with their closed sets of values, unit, buckets, meaning.
//!
//! Code that counts writes the name out; a test compares it with this table. A label never holds an id, a title or a
//! name that a model chose.

/// One metric.
#[derive(Debug)]
pub struct Metric {
    /// As scraped.
    pub name: &'static str,
    /// What it is, with what only that kind has.
    pub kind: Kind,
    /// Its only label and every value that it takes; `None` for a metric without labels.
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

/// A label.
#[derive(Debug)]
pub struct Label {
    /// Its key.
    pub key: &'static str,
    /// All its values.
    pub values: &'static [&'static str],
}

const fn label(key: &'static str, values: &'static [&'static str]) -> Option<Label> {
    Some(Label { key, values })
}

const CALL_BUCKETS: &[f64] = &[0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 90.0, 120.0, 180.0, 300.0];
const TOOL_BUCKETS: &[f64] = &[0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0];
const STORE_BUCKETS: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

const REFUSABLE: &[&str] = &["checkpoint", "step", "finish", "renew"];
const DEAD_REASONS: &[&str] =
    &["undecodable", "empty", "too_large", "used_id", "invalid_id", "unknown_chain", "attempts_exhausted"];

/// All of them.
pub const METRICS: &[Metric] = &[
    Metric {
        name: "tarsy_alerts_received_total",
        kind: Kind::Counter,
        label: label("priority", &["critical", "high", "normal", "low"]),
        help: "deliveries taken from the stream of alerts, redeliveries included",
    },
    Metric { name: "tarsy_sessions_opened_total", kind: Kind::Counter, label: None, help: "investigations begun" },
    Metric {
        name: "tarsy_sessions_resumed_total",
        kind: Kind::Counter,
        label: None,
        help: "investigations taken over from a worker that is gone or handed them back",
    },
    Metric {
        name: "tarsy_sessions_finished_total",
        kind: Kind::Counter,
        label: label("status", &["completed", "failed", "cancelled", "timed_out"]),
        help: "investigations ended",
    },
    Metric {
        name: "tarsy_alerts_joined_total",
        kind: Kind::Counter,
        label: label("reason", &["open", "cooldown"]),
        help: "alerts that an open session took along, or that one answers for that completed within the cooldown",
    },
    Metric {
        name: "tarsy_sessions_released_total",
        kind: Kind::Counter,
        label: label("reason", &["drain", "model_away", "store_away", "not_for_us"]),
        help: "investigations handed back for another worker to go on with",
    },
    Metric {
        name: "tarsy_sessions_lost_total",
        kind: Kind::Counter,
        label: None,
        help: "investigations that another worker took over while this one had not handed them back",
    },
    Metric {
        name: "tarsy_sweeps_total",
        kind: Kind::Counter,
        label: label("found", &["overdue", "requeued", "settled"]),
        help: "things that nobody took care of and that a sweep has done",
    },
    Metric {
        name: "tarsy_drain_duration_seconds",
        kind: Kind::Seconds(TOOL_BUCKETS),
        label: None,
        help: "from the signal to stop until the last session was handed back",
    },
    Metric {
        name: "tarsy_draining",
        kind: Kind::Gauge,
        label: None,
        help: "1 while this worker lets its last calls finish and hands its sessions back",
    },
    Metric {
        name: "tarsy_writes_refused_total",
        kind: Kind::Counter,
        label: label("statement", REFUSABLE),
        help: "writes that the fence refused because another worker owns the session",
    },
    Metric {
        name: "tarsy_dead_letters_total",
        kind: Kind::Counter,
        label: label("reason", DEAD_REASONS),
        help: "alerts given up",
    },
    Metric {
        name: "tarsy_model_calls_total",
        kind: Kind::Counter,
        label: label("outcome", &["answered", "failed", "away"]),
        help: "model calls ended",
    },
    Metric {
        name: "tarsy_model_call_duration_seconds",
        kind: Kind::Seconds(CALL_BUCKETS),
        label: None,
        help: "from the request to the end of the answer or the failure",
    },
    Metric {
        name: "tarsy_tool_calls_total",
        kind: Kind::Counter,
        label: label("outcome", &["done", "failed", "lost"]),
        help: "tool calls ended",
    },
    Metric {
        name: "tarsy_tool_call_duration_seconds",
        kind: Kind::Seconds(TOOL_BUCKETS),
        label: None,
        help: "from the request to the result or the failure",
    },
    Metric {
        name: "tarsy_checkpoint_duration_seconds",
        kind: Kind::Seconds(STORE_BUCKETS),
        label: None,
        help: "until a checkpoint was committed, retries included",
    },
    Metric {
        name: "tarsy_events_published_total",
        kind: Kind::Counter,
        label: None,
        help: "timeline events that the stream has acknowledged",
    },
    Metric {
        name: "tarsy_event_publish_duration_seconds",
        kind: Kind::Seconds(STORE_BUCKETS),
        label: None,
        help: "until the stream has acknowledged a timeline event",
    },
    Metric {
        name: "tarsy_nats_reconnects_total",
        kind: Kind::Counter,
        label: None,
        help: "connections to NATS after the first one",
    },
    Metric {
        name: "tarsy_claim_stalls_total",
        kind: Kind::Counter,
        label: None,
        help: "times that claiming began anew because alerts waited beside free slots",
    },
    Metric {
        name: "tarsy_sessions_running",
        kind: Kind::Gauge,
        label: None,
        help: "investigations that this worker owns now",
    },
    Metric {
        name: "tarsy_worker_slots",
        kind: Kind::Gauge,
        label: None,
        help: "investigations that this worker can own at once",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ports::DeadReason;

    #[test]
    fn every_reason_for_a_dead_letter_is_counted() {
        assert_eq!(DEAD_REASONS, DeadReason::ALL.map(DeadReason::as_str));
    }
}
