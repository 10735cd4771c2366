//! The form of a log line: its event, and the ids of the session, the execution and the trace that it belongs to.
//!
//! The ids come from the innermost span that has a place in a trace. A field of the event precedes the id of its name.

use std::fmt;

use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::{Format, one_line};
use tarsy_engine::trace::SpanContext;

/// Formats events as [`Format`] says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lines(pub(super) Format);

/// Formats no field of a span: lines have its ids, and attributes are for the collector.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoFields;

impl<'w> FormatFields<'w> for NoFields {
    fn format_fields<R: tracing_subscriber::field::RecordFields>(
        &self,
        _: Writer<'w>,
        _: R,
    ) -> fmt::Result {
        Ok(())
    }
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    N: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = EventFields::default();
        event.record(&mut fields);
        let place = context
            .event_scope()
            .into_iter()
            .flatten()
            .find_map(|span| span.extensions().get::<SpanContext>().cloned());
        for (name, id) in place.map(ids).unwrap_or_default() {
            if fields.0.iter().all(|(present, _)| *present != name) {
                fields.0.push((name, Shown::AsIs(id)));
            }
        }
        match self.0 {
            Format::Json => json(&mut writer, event.metadata(), fields),
            Format::Text { ansi } => text(&mut writer, event.metadata(), fields, Style { ansi }),
        }
    }
}

fn ids(place: SpanContext) -> Vec<(&'static str, String)> {
    let session = place.session_id.map(|id| ("session_id", id.to_string()));
    let execution = place
        .execution_id
        .map(|id| ("execution_id", id.to_string()));
    let trace = [
        ("trace_id", place.context.trace_id.to_string()),
        ("span_id", place.context.span_id.to_string()),
    ];
    session.into_iter().chain(execution).chain(trace).collect()
}

/// A value of a field.
#[derive(Debug)]
enum Shown {
    /// A text, which lines for people show in quotation marks.
    Quoted(String),
    /// Text that the code has already formatted.
    AsIs(String),
    Other(Value),
}

/// The fields of an event, in order.
#[derive(Debug, Default)]
struct EventFields(Vec<(&'static str, Shown)>);

impl EventFields {
    fn message(&mut self) -> Option<Shown> {
        let at = self.0.iter().position(|(name, _)| *name == "message")?;
        Some(self.0.remove(at).1)
    }
}

impl Visit for EventFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name(), Shown::Quoted(value.to_owned())));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        // A flag arrives in its debug form.
        let flag: Option<bool> = text.parse().ok();
        self.0.push((
            field.name(),
            flag.map_or(Shown::AsIs(text), |flag| Shown::Other(flag.into())),
        ));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.push((field.name(), Shown::Other(value.into())));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.push((field.name(), Shown::Other(value.into())));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.push((field.name(), Shown::Other(value.into())));
    }
}

fn json(writer: &mut Writer<'_>, metadata: &Metadata<'_>, mut fields: EventFields) -> fmt::Result {
    let mut time = String::new();
    SystemTime.format_time(&mut Writer::new(&mut time))?;
    let level = metadata.level().as_str();
    write!(
        writer,
        r#"{{"timestamp":"{time}","level":"{level}","target":{}"#,
        Value::from(metadata.target())
    )?;
    let message = fields.message().map(|message| ("message", message));
    for (name, value) in message.into_iter().chain(fields.0) {
        let value = match value {
            Shown::Quoted(text) | Shown::AsIs(text) => text.into(),
            Shown::Other(value) => value,
        };
        write!(writer, ",{}:{value}", Value::from(name))?;
    }
    writeln!(writer, "}}")
}

/// Colours of a terminal.
#[derive(Clone, Copy, Debug)]
struct Style {
    ansi: bool,
}

impl Style {
    fn dim(self, text: &str) -> String {
        self.coded("2", text)
    }

    fn level(self, level: Level) -> String {
        let code = match level {
            Level::ERROR => "31",
            Level::WARN => "33",
            Level::INFO => "32",
            Level::DEBUG => "34",
            Level::TRACE => "35",
        };
        self.coded(code, &format!("{level:>5}"))
    }

    fn coded(self, code: &str, text: &str) -> String {
        if self.ansi {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

fn text(
    writer: &mut Writer<'_>,
    metadata: &Metadata<'_>,
    mut fields: EventFields,
    style: Style,
) -> fmt::Result {
    let mut time = String::new();
    SystemTime.format_time(&mut Writer::new(&mut time))?;
    let target = format!("{}:", metadata.target());
    write!(
        writer,
        "{} {} {}",
        style.dim(&time),
        style.level(*metadata.level()),
        style.dim(&target)
    )?;
    if let Some(message) = fields.message() {
        write!(writer, " {}", one_line(&shown(message)))?;
    }
    for (name, value) in fields.0 {
        write!(
            writer,
            " {}{}",
            style.dim(&format!("{name}=")),
            one_line(&shown(value))
        )?;
    }
    writeln!(writer)
}

fn shown(value: Shown) -> String {
    match value {
        Shown::Quoted(text) => format!("{text:?}"),
        Shown::AsIs(text) => text,
        Shown::Other(value) => value.to_string(),
    }
}
