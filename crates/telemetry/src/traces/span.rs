//! A span that is recorded, and the visitor that reads its fields.

use std::fmt;
use std::sync::Arc;

use tracing::field::{Field, Visit};

use tarsy_core::ids::SessionId;
use tarsy_core::trace_context::{SpanId, TraceContext, TraceId};

/// A longer attribute is cut: a collector refuses large messages. Content that an operator asks for may be long.
const MAX_ATTRIBUTE_BYTES: usize = 32 * 1024;

/// The kind of a span, as OTLP numbers it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    Internal = 1,
    Server = 2,
    Client = 3,
    Producer = 4,
    Consumer = 5,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
}

/// A span that has not ended.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenSpan {
    pub(super) parent: Option<SpanId>,
    pub(super) began_ns: u64,
    pub(super) fields: Fields,
}

/// A span that has ended and can be exported.
#[derive(Clone, Debug)]
pub(super) struct EndedSpan {
    pub(super) context: TraceContext,
    pub(super) span: OpenSpan,
    pub(super) ended_ns: u64,
}

/// The fields of a span: its instructions, and its attributes. A later value of an attribute replaces the earlier one.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) parent: Option<TraceContext>,
    pub(super) link: Option<TraceContext>,
    /// The span that this one represents; then this one is not exported.
    pub(super) of: Option<TraceContext>,
    /// The id of a new trace.
    pub(super) trace_id: Option<TraceId>,
    pub(super) session_id: Option<Arc<str>>,
    pub(super) execution_id: Option<Arc<str>>,
    pub(super) attributes: Vec<(&'static str, Value)>,
    pub(super) has_failed: bool,
}

impl Fields {
    fn text(&mut self, name: &'static str, text: &str) {
        match name {
            "otel.name" => text.clone_into(&mut self.name),
            "otel.kind" => {
                self.kind = match text {
                    "server" => Kind::Server,
                    "client" => Kind::Client,
                    "producer" => Kind::Producer,
                    "consumer" => Kind::Consumer,
                    _ => Kind::Internal,
                };
            }
            "trace.parent" => self.parent = TraceContext::parse(text),
            "trace.link" => self.link = TraceContext::parse(text),
            "trace.of" => self.of = TraceContext::parse(text),
            "trace.id" => self.trace_id = SessionId::parse(text).map(TraceId::from),
            "session_id" => self.session_id = Some(text.into()),
            "execution_id" => self.execution_id = Some(text.into()),
            _ => {
                self.has_failed |= name == "error.type";
                let end = text.floor_char_boundary(MAX_ATTRIBUTE_BYTES);
                self.set(
                    name,
                    Value::Text(text.get(..end).unwrap_or_default().to_owned()),
                );
            }
        }
    }

    fn set(&mut self, name: &'static str, value: Value) {
        self.attributes.retain(|(present, _)| *present != name);
        self.attributes.push((name, value));
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field.name(), &format!("{value:?}"));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field.name(), Value::Integer(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(
            field.name(),
            Value::Integer(i64::try_from(value).unwrap_or(i64::MAX)),
        );
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field.name(), Value::Float(value));
    }
}
