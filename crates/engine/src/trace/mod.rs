//! The spans of an investigation. The engine and the adapters only open spans of `tracing`; the ring `telemetry` gives
//! each one its place in a trace, exports it, and writes its ids into log lines.
//!
//! A span of this target has a name, which is a field because it may contain the name of an agent or a tool. These
//! fields are instructions: `otel.name`, `otel.kind` (`server`, `client`, `producer`, `consumer`; otherwise internal),
//! `trace.parent`, `trace.link` and `trace.of` (each a `traceparent`), `trace.id` (the session whose id a new trace
//! gets), and `session_id` and `execution_id`, which the spans inside inherit. Every other field is an attribute. The
//! words of a model, a tool or an alert are attributes only if the operator asks for them ([`captures_content`]).

pub mod gen_ai;
pub mod messaging;
pub mod servers;

use std::sync::Arc;

use tracing::{Span, info_span};
use tracing_subscriber::Registry;
use tracing_subscriber::registry::LookupSpan as _;

use tarsy_core::ids::SessionId;
use tarsy_core::trace_context::TraceContext;

/// The target of every span that belongs to a trace.
pub const TARGET: &str = "tarsy::trace";

/// The place of a span in its trace. The recorder stores it with the span.
#[derive(Clone, Debug)]
pub struct SpanContext {
    pub context: TraceContext,
    pub session_id: Option<Arc<str>>,
    pub execution_id: Option<Arc<str>>,
    /// Whether other processes are to continue the trace. A new trace of a process that exports nothing is not: its
    /// flags would keep others from recording it.
    pub is_propagated: bool,
    /// Whether the span will be exported.
    pub is_recorded: bool,
    pub captures_content: bool,
}

/// The place of the current span; `None` outside of every trace.
fn current() -> Option<SpanContext> {
    place_of(&Span::current())
}

fn place_of(span: &Span) -> Option<SpanContext> {
    let found = span.with_subscriber(|(id, dispatch)| {
        let span = dispatch.downcast_ref::<Registry>()?.span(id)?;
        span.scope()
            .find_map(|span| span.extensions().get::<SpanContext>().cloned())
    });
    found.flatten()
}

/// The context that the next process gets with a request.
pub fn outgoing() -> Option<TraceContext> {
    current()
        .filter(|place| place.is_propagated)
        .map(|place| place.context)
}

/// A span for lines that another task writes about the current one, without extending it: it is not exported. Without
/// a place in a trace, or in that of another session, such lines have only their own fields.
pub fn beside(session_id: SessionId) -> Span {
    let session_id = session_id.to_string();
    let Some(place) = current().filter(|place| place.session_id.as_deref() == Some(&*session_id))
    else {
        return Span::none();
    };
    let execution_id = place.execution_id.as_deref();
    info_span!(target: TARGET, parent: None, "beside", session_id, execution_id, trace.of = %place.context)
}

/// The context of a span that others may link to; `None` if it is not exported.
pub(crate) fn linkable(span: &Span) -> Option<TraceContext> {
    place_of(span)
        .filter(|place| place.is_recorded)
        .map(|place| place.context)
}

/// Whether the operator wants prompts, answers, arguments and results in attributes.
pub fn captures_content() -> bool {
    current().is_some_and(|place| place.captures_content)
}

/// A worker takes a session, by opening or claiming it. The span is short, so that it is exported although the worker
/// dies later, and the next attempt links to it.
pub fn claim() -> Span {
    info_span!(target: TARGET, "claim", otel.name = "claim session", tarsy.claim.outcome = tracing::field::Empty)
}

/// Marks the span of a claim by which the worker has got the session.
pub fn taken(span: &Span) {
    span.record("tarsy.claim.outcome", "taken");
}

/// A run of a session, from its claim to its end or release. `previous` is the claim of the attempt before, or of the
/// session that this one repeats or asks about.
pub fn run(session_id: SessionId, previous: Option<TraceContext>) -> Span {
    info_span!(
        target: TARGET, "run", otel.name = "run session", %session_id,
        trace.link = previous.map(tracing::field::display), tarsy.run.end = tracing::field::Empty,
    )
}

/// One answer of the model with its tool calls. `number` counts from 1.
pub fn iteration(number: u32) -> Span {
    info_span!(target: TARGET, "iteration", otel.name = "iteration", tarsy.iteration = number)
}

/// Marks a span as failed. `error` is one of a closed set of words.
pub fn fail(span: &Span, error: &str) {
    span.record("error.type", error);
}
