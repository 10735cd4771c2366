//! The metrics of `tarsy receive`.

use super::common::TOOL_BUCKETS;
use super::metric::{Metric, counter, gauge, seconds};
use tarsy_config::BUILTIN_SOURCE_NAMES;

/// The values for forms that belong to no source, and for the sources of users.
const OTHERS: [&str; 3] = ["json", "text", "custom"];
const SOURCES: [&str; OTHERS.len() + BUILTIN_SOURCE_NAMES.len()] = sources();

#[allow(
    clippy::indexing_slicing,
    reason = "an index outside would not compile"
)]
const fn sources() -> [&'static str; OTHERS.len() + BUILTIN_SOURCE_NAMES.len()] {
    let mut words = [""; OTHERS.len() + BUILTIN_SOURCE_NAMES.len()];
    let mut at = 0;
    while at < words.len() {
        words[at] = if at < OTHERS.len() {
            OTHERS[at]
        } else {
            BUILTIN_SOURCE_NAMES[at - OTHERS.len()]
        };
        at += 1;
    }
    words
}

/// Exported by `tarsy receive`.
pub(super) const RECEIVE: &[Metric] = &[
    counter(
        "tarsy_receive_requests_total",
        "requests answered, by the class of the status code",
    )
    .by(
        "path",
        &[
            "alertmanager",
            "grafana",
            "alert",
            "hooks",
            "slack/actions",
            "slack/events",
            "other",
        ],
    )
    .by("code", &["2xx", "4xx", "5xx"]),
    counter(
        "tarsy_receive_alerts_total",
        "alerts in the requests that were accepted, by the source that was recognised",
    )
    .by("source", &SOURCES)
    .by("outcome", &["published", "ignored"]),
    counter(
        "tarsy_receive_other_form_total",
        "bodies that do not fit the source of their path, which were read as another form",
    )
    .by("source", &SOURCES),
    seconds(
        "tarsy_receive_request_duration_seconds",
        TOOL_BUCKETS,
        "from the head of a request to its response",
    ),
    gauge("tarsy_receive_connections", "open connections"),
];
