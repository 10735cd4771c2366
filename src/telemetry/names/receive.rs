//! The metrics of `tarsy receive`.

use super::common::TOOL_BUCKETS;
use super::metric::{Metric, counter, gauge, seconds};

/// Exported by `tarsy receive`.
pub(super) const RECEIVE: &[Metric] = &[
    counter("tarsy_receive_requests_total", "requests answered, by the class of the status code")
        .by("path", &["alertmanager", "grafana", "alert", "other"])
        .by("code", &["2xx", "4xx", "5xx"]),
    seconds("tarsy_receive_request_duration_seconds", TOOL_BUCKETS, "from the head of a request to its response"),
    gauge("tarsy_receive_connections", "open connections"),
];
