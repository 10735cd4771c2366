//! The metrics of `tarsy web`.

use super::common::TOOL_BUCKETS;
use super::metric::{Metric, counter, gauge, seconds};

/// Exported by `tarsy web`.
pub(super) const WEB: &[Metric] = &[
    counter(
        "tarsy_web_requests_total",
        "requests answered, by the class of the status code",
    )
    .by("kind", &["page", "api", "stream", "asset"])
    .by("code", &["2xx", "3xx", "4xx", "5xx"]),
    seconds(
        "tarsy_web_request_duration_seconds",
        TOOL_BUCKETS,
        "from the head of a request to the head of its response",
    ),
    gauge("tarsy_web_streams", "open streams of events"),
    gauge(
        "tarsy_web_followers",
        "followers of timelines, each shared by the streams of a session",
    ),
    counter(
        "tarsy_web_streams_cut_total",
        "streams that were refused or cut off: too many of a user, or too far behind",
    )
    .by("reason", &["limit", "behind"]),
];
