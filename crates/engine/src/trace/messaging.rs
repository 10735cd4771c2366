//! The spans of messages on the queue, after OpenTelemetry's conventions for messaging.

use serde_json::Value;
use tracing::field::Empty;
use tracing::{Span, info_span};

use super::TARGET;
use crate::ports::{Inherited, Received};
use tarsy_core::intake::headers::{TRACEPARENT, chosen_session_id};
use tarsy_core::trace_context::TraceContext;

const SYSTEM: &str = "nats";
/// The tokens of a subject that have a closed set of words; the rest is what a producer chose.
const CLOSED_TOKENS: usize = 3;

/// A worker processes a delivery of an alert or a question: from its arrival to its acknowledgement. The span belongs
/// to the trace of its producer, or to one with the id of its session.
pub fn process(received: &Received) -> Span {
    let destination = destination(&received.subject);
    info_span!(
        target: TARGET, "process",
        otel.name = format!("process {destination}"), otel.kind = "consumer",
        session_id = %received.alert_id, trace.id = %received.alert_id,
        trace.parent = parent(&received.headers).map(display),
        messaging.system = SYSTEM, messaging.operation.name = "process", messaging.operation.type = "process",
        messaging.destination.name = destination, messaging.message.id = received.stream_sequence.to_string(),
    )
}

/// A worker continues with a session of a dead worker of its pod, without a message. The span belongs to the trace of
/// the producer as well.
pub fn inherit(inherited: &Inherited) -> Span {
    info_span!(
        target: TARGET, "inherit", otel.name = "inherit session",
        session_id = %inherited.session_id, trace.id = %inherited.session_id, trace.parent = inherited.trace.map(display),
    )
}

/// A process publishes an alert or a question on a subject of the queue. The span belongs to the current trace, to that
/// of the headers, or to one with the id of the session.
pub fn publish(subject: &str, headers: &Value) -> Span {
    let destination = destination(subject);
    let session_id = chosen_session_id(headers).ok().flatten();
    let parent = match super::current() {
        None => parent(headers),
        Some(_) => None,
    };
    info_span!(
        target: TARGET, "publish",
        otel.name = format!("publish {destination}"), otel.kind = "producer",
        session_id = session_id.map(display), trace.id = session_id.map(display), trace.parent = parent.map(display),
        messaging.system = SYSTEM, messaging.operation.name = "publish", messaging.operation.type = "send",
        messaging.destination.name = destination, error.type = Empty,
    )
}

/// The context in the headers of a message. An invalid one counts as none.
fn parent(headers: &Value) -> Option<TraceContext> {
    TraceContext::parse(headers.get(TRACEPARENT)?.as_str()?)
}

/// `tarsy.alerts.high` of `tarsy.alerts.high.disk-full`.
fn destination(subject: &str) -> String {
    subject
        .split('.')
        .take(CLOSED_TOKENS)
        .collect::<Vec<_>>()
        .join(".")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_destination_leaves_out_what_the_producer_chose() {
        assert_eq!(
            destination("tarsy.alerts.high.disk-full.eu"),
            "tarsy.alerts.high"
        );
        assert_eq!(destination("tarsy.questions.low"), "tarsy.questions.low");
    }

    #[test]
    fn a_message_without_a_valid_context_has_none() {
        let valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(
            parent(&json!({"traceparent": valid}))
                .map(|context| context.to_string())
                .as_deref(),
            Some(valid)
        );
        for headers in [
            json!({}),
            json!({"traceparent": "00-1-2-01"}),
            json!({"traceparent": 1}),
        ] {
            assert_eq!(parent(&headers), None, "{headers}");
        }
    }
}
