//! `TraceLayer`, a layer of `tracing` that gives each span of a trace its context, and queues it for export when it
//! ends.
//!
//! Without an exporter the layer still gives places, because log lines have the ids of their trace.

use chrono::Utc;
use tracing::Subscriber;
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::export::SpanQueue;
use super::sampler::Sampler;
use super::span::{EndedSpan, Fields, OpenSpan, Value};
use tarsy_core::trace_context::{SpanId, TraceContext, TraceId};
use tarsy_engine::trace::{SpanContext, TARGET};

/// The layer. Its spans are those of the target [`TARGET`].
#[derive(Debug, Default)]
pub struct TraceLayer {
    export: Option<Export>,
}

/// The export of a process: it samples spans and queues them for the collector.
#[derive(Debug)]
pub(super) struct Export {
    pub(super) queue: SpanQueue,
    pub(super) sampler: Sampler,
    pub(super) captures_content: bool,
}

impl TraceLayer {
    pub(super) fn exporting(export: Export) -> Self {
        Self {
            export: Some(export),
        }
    }

    fn place(&self, fields: &Fields, inside: Option<&SpanContext>) -> SpanContext {
        let (context, is_propagated) = match fields.of {
            Some(of) => (of, false),
            None => self.context(fields, inside),
        };
        let is_recorded = self.export.is_some() && context.sampled && fields.of.is_none();
        let inherited = |own: &Option<_>, of: fn(&SpanContext) -> &Option<_>| {
            own.clone().or_else(|| of(inside?).clone())
        };
        SpanContext {
            context,
            session_id: inherited(&fields.session_id, |place| &place.session_id),
            execution_id: inherited(&fields.execution_id, |place| &place.execution_id),
            is_propagated,
            is_recorded,
            captures_content: is_recorded
                && self
                    .export
                    .as_ref()
                    .is_some_and(|export| export.captures_content),
        }
    }

    /// The context of a new span, and whether it is propagated.
    fn context(&self, fields: &Fields, inside: Option<&SpanContext>) -> (TraceContext, bool) {
        let begun = |trace_id: TraceId, sampled| TraceContext {
            trace_id,
            span_id: new_span_id(),
            sampled,
        };
        let new_trace = || fields.trace_id.unwrap_or_else(new_trace_id);
        let context = match (fields.parent, inside, &self.export) {
            (Some(remote), _, Some(export)) => {
                let sampled = export.sampler.samples(remote.trace_id, Some(remote));
                begun(remote.trace_id, sampled)
            }
            (None, Some(inside), Some(_)) => begun(inside.context.trace_id, inside.context.sampled),
            (None, None, Some(export)) => {
                let trace_id = new_trace();
                begun(trace_id, export.sampler.samples(trace_id, None))
            }
            // The next process continues the trace of the one before this one, as if this one were not there.
            (Some(remote), _, None) => remote,
            (None, Some(inside), None) => return (inside.context, inside.is_propagated),
            (None, None, None) => return (begun(new_trace(), false), false),
        };
        (context, true)
    }
}

impl<S: Subscriber + for<'s> LookupSpan<'s>> Layer<S> for TraceLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context
            .span(id)
            .filter(|span| span.metadata().target() == TARGET)
        else {
            return;
        };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let inside = span
            .scope()
            .skip(1)
            .find_map(|outer| outer.extensions().get::<SpanContext>().cloned());
        let place = self.place(&fields, inside.as_ref());
        let parent = fields
            .parent
            .or_else(|| inside.map(|inside| inside.context))
            .map(|parent| parent.span_id);
        let mut extensions = span.extensions_mut();
        if place.is_recorded {
            extensions.insert(OpenSpan {
                parent,
                began_ns: now_ns(),
                fields,
            });
        }
        extensions.insert(place);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(open) = span.extensions_mut().get_mut::<OpenSpan>() {
            values.record(&mut open.fields);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let (Some(export), Some(span)) = (&self.export, context.span(&id)) else {
            return;
        };
        let mut extensions = span.extensions_mut();
        let open = extensions.remove::<OpenSpan>();
        let (Some(open), Some(place)) = (open, extensions.remove::<SpanContext>()) else {
            return;
        };
        // A span with many fields is written by another task.
        drop(extensions);
        export.queue.push(ended(open, &place));
    }
}

fn ended(mut span: OpenSpan, place: &SpanContext) -> EndedSpan {
    let ids = [
        ("tarsy.session_id", &place.session_id),
        ("tarsy.execution_id", &place.execution_id),
    ];
    for (name, id) in ids {
        let id = id.as_ref().map(|id| Value::Text(id.to_string()));
        span.fields.attributes.extend(id.map(|id| (name, id)));
    }
    EndedSpan {
        context: place.context,
        ended_ns: now_ns().max(span.began_ns),
        span,
    }
}

fn now_ns() -> u64 {
    Utc::now()
        .timestamp_nanos_opt()
        .and_then(|now| u64::try_from(now).ok())
        .unwrap_or_default()
}

fn new_span_id() -> SpanId {
    loop {
        if let Some(id) = SpanId::new(fastrand::u64(..).to_be_bytes()) {
            return id;
        }
    }
}

fn new_trace_id() -> TraceId {
    loop {
        if let Some(id) = TraceId::new(fastrand::u128(..).to_be_bytes()) {
            return id;
        }
    }
}
