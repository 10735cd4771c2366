//! The metrics that several roles export, and the buckets that several tables use.

use super::metric::{Metric, counter, gauge};

pub(super) const CALL_BUCKETS: &[f64] = &[
    0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 90.0, 120.0, 180.0, 300.0,
];
pub(super) const TOOL_BUCKETS: &[f64] = &[
    0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0,
];

/// Exported by every role.
pub(super) const COMMON: &[Metric] = &[
    gauge("tarsy_ready", "1 while /readyz answers 200: the role takes work"),
    gauge("tarsy_build_info", "always 1; version, commit (unknown unless the build sets it) and compiler are labels")
        .by("version", &[env!("CARGO_PKG_VERSION")])
        .by("commit", &[tarsy_build_info::COMMIT])
        .by("rustc", &[tarsy_build_info::RUSTC]),
    counter("process_cpu_seconds_total", "CPU time of this process, user and system"),
    counter(
        "tarsy_connections_refused_total",
        "connections closed because of a limit; refused: the new one, evicted: an idle one, stalled: one that reads nothing",
    )
    .by("listener", &["alerts", "metrics", "llm", "web"])
    .by("how", &["refused", "evicted", "stalled"]),
    counter(
        "tarsy_trace_spans_total",
        "spans that ended; queue_full: dropped because the collector is too slow; failed: not taken by the collector",
    )
    .by("outcome", &["exported", "queue_full", "failed"]),
    gauge("process_resident_memory_bytes", "resident memory of this process"),
    gauge("process_open_fds", "open file descriptors of this process"),
    gauge("process_max_fds", "maximum number of open file descriptors"),
    gauge("process_start_time_seconds", "start time of this process in Unix seconds"),
];

/// Exported by every role with a connection to NATS.
pub(super) const NATS: &[Metric] = &[counter("tarsy_nats_reconnects_total", "reconnects to NATS")];
