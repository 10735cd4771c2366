//! Tests of the recorder: span contexts, propagation and the queue.

use tokio::sync::mpsc;
use tracing::info_span;
use tracing_subscriber::layer::SubscriberExt as _;
use uuid::Uuid;

use super::export::SpanQueue;
use super::layer::{Export, TraceLayer};
use super::sampler::Sampler;
use super::span::{EndedSpan, Kind, Value};
use tarsy_core::ids::SessionId;
use tarsy_core::trace_context::{SpanId, TraceContext, TraceId};
use tarsy_engine::trace::{TARGET, beside, captures_content, outgoing};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const UNSAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

/// Does the work under a recorder with room for this many spans.
fn recorded(room: usize, work: impl FnOnce()) -> Vec<EndedSpan> {
    let (queue, queued) = SpanQueue::bounded(room);
    let export = Export {
        queue,
        sampler: Sampler::default(),
        captures_content: true,
    };
    under(TraceLayer::exporting(export), work);
    drain(queued)
}

fn drain(mut queued: mpsc::Receiver<EndedSpan>) -> Vec<EndedSpan> {
    std::iter::from_fn(|| queued.try_recv().ok()).collect()
}

fn under(recorder: TraceLayer, work: impl FnOnce()) {
    tracing::subscriber::with_default(tracing_subscriber::registry().with(recorder), work);
}

fn parent() -> TraceContext {
    TraceContext::parse(PARENT).unwrap()
}

#[test]
fn a_span_belongs_to_the_trace_of_its_remote_parent_and_to_the_span_around_it() {
    let session = SessionId(Uuid::now_v7());
    let spans = recorded(9, || {
        let outer = info_span!(
            target: TARGET, "a", otel.name = "outer", otel.kind = "consumer", trace.parent = PARENT,
            trace.link = UNSAMPLED, session_id = %session, number = 7_u64
        );
        outer.in_scope(|| {
            let _foreign = info_span!("of a library").entered();
            let inner = info_span!(target: TARGET, "b", otel.name = "inner", error.type = tracing::field::Empty);
            inner.record("error.type", "timeout");
            assert!(inner.in_scope(captures_content));
        });
    });
    let [inner, outer] = spans.as_slice() else {
        panic!("{spans:#?}")
    };
    assert_eq!(
        (outer.context.trace_id, inner.context.trace_id),
        (parent().trace_id, parent().trace_id)
    );
    assert_eq!(
        (outer.span.parent, inner.span.parent),
        (Some(parent().span_id), Some(outer.context.span_id))
    );
    assert_eq!(
        (outer.span.fields.name.as_str(), outer.span.fields.kind),
        ("outer", Kind::Consumer)
    );
    assert_eq!(outer.span.fields.link, TraceContext::parse(UNSAMPLED));
    let session = ("tarsy.session_id", Value::Text(session.to_string()));
    assert_eq!(
        outer.span.fields.attributes,
        [("number", Value::Integer(7)), session.clone()]
    );
    assert_eq!(
        inner.span.fields.attributes,
        [("error.type", Value::Text("timeout".to_owned())), session]
    );
    assert!(inner.span.fields.has_failed && !outer.span.fields.has_failed);
    assert!(outer.span.began_ns <= inner.span.began_ns && inner.ended_ns <= outer.ended_ns);
}

#[test]
fn a_new_trace_has_the_id_of_its_session_and_an_invalid_context_counts_as_none() {
    let session = SessionId(Uuid::now_v7());
    for invalid in ["00-1-2-01", &"0".repeat(100_000), "é\u{0}"] {
        let spans = recorded(1, || {
            drop(info_span!(target: TARGET, "a", trace.id = %session, trace.parent = invalid))
        });
        assert_eq!(
            (spans[0].context.trace_id, spans[0].span.parent),
            (TraceId::from(session), None)
        );
    }
    assert_eq!(
        recorded(1, || drop(info_span!(target: TARGET, "a"))).len(),
        1
    );
    assert!(recorded(1, || drop(info_span!("of a library"))).is_empty());
}

#[test]
fn a_span_whose_producer_is_not_recorded_is_neither_but_its_context_goes_on() {
    let spans = recorded(9, || {
        let span = info_span!(target: TARGET, "a", trace.parent = UNSAMPLED).entered();
        let context = outgoing().unwrap();
        assert_eq!(
            (context.trace_id, context.sampled),
            (parent().trace_id, false)
        );
        assert!(context.span_id != parent().span_id && !captures_content());
        drop(span);
    });
    assert!(spans.is_empty(), "{spans:#?}");
}

#[test]
fn a_process_without_a_collector_passes_contexts_on_and_begins_no_trace_for_others() {
    under(TraceLayer::default(), || {
        let outer = info_span!(target: TARGET, "a", trace.parent = PARENT).entered();
        let inner = info_span!(target: TARGET, "b").entered();
        assert_eq!(outgoing(), Some(parent()));
        drop((inner, outer));
        info_span!(target: TARGET, "a", trace.id = %SessionId(Uuid::now_v7()))
            .in_scope(|| assert_eq!(outgoing(), None));
    });
    assert_eq!(outgoing(), None);
}

#[test]
fn lines_beside_a_session_have_its_place_and_extend_no_span() {
    let session = SessionId(Uuid::now_v7());
    let spans = recorded(9, || {
        let outer = info_span!(target: TARGET, "a", trace.id = %session, session_id = %session);
        let (own, other) = outer.in_scope(|| (beside(session), beside(SessionId(Uuid::now_v7()))));
        assert!(!own.is_none() && other.is_none());
        drop(outer);
        own.in_scope(|| assert_eq!(outgoing(), None));
    });
    assert_eq!(spans.len(), 1);
}

#[test]
fn a_span_without_room_is_dropped_and_counted() {
    let metrics = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let handle = metrics.handle();
    let spans = metrics::with_local_recorder(&metrics, || {
        recorded(2, || {
            (0..5).for_each(|_| drop(info_span!(target: TARGET, "a")))
        })
    });
    assert_eq!(spans.len(), 2);
    let counted = handle.render();
    assert!(
        counted.contains("tarsy_trace_spans_total{outcome=\"queue_full\"} 3"),
        "{counted}"
    );
}

#[test]
fn a_long_attribute_is_cut() {
    let text = "é".repeat(100_000);
    let spans = recorded(1, || drop(info_span!(target: TARGET, "a", note = text)));
    let [(_, Value::Text(note))] = spans[0].span.fields.attributes.as_slice() else {
        panic!("{spans:#?}")
    };
    assert_eq!(note.len(), 32 * 1024);
    assert_eq!(SpanId::new([0; 8]), None);
}
