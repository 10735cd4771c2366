//! Logs on standard error: text or one JSON object per line, without secrets. A line that belongs to a session has the
//! ids of session, execution and trace.
//!
//! One line is one event, because control characters in fields are escaped. The mask is applied to each finished line,
//! so no call of a log macro can forget it.

mod masked;
mod lines;

use std::io;

use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Context, Filter, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use self::lines::{Lines, NoFields};
use super::process_mask::ProcessMask;
use super::traces::TraceLayer;
use tarsy_engine::trace::TARGET;

/// The format of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text for people.
    Text { ansi: bool },
    /// A JSON object per line, for programs.
    Json,
}

/// The logs cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The levels cannot be parsed.
    #[error(
        "log level {levels:?} is not understood; accepted: error, warn, info, debug, trace, or a list like tarsy=debug,info"
    )]
    Levels {
        levels: String,
        source: tracing_subscriber::filter::ParseError,
    },
    /// The process has a subscriber already.
    #[error("logs are set up already")]
    Installed(#[from] tracing_subscriber::util::TryInitError),
}

/// Sends the logs of this process to standard error. `levels` is a level (`info`) or a list (`tarsy=debug,info`). The
/// recorder gives the spans of traces their ids, whatever the levels are.
///
/// # Errors
///
/// When `levels` cannot be parsed, or the process has a subscriber already.
pub fn install(
    levels: &str,
    format: Format,
    recorder: TraceLayer,
    mask: ProcessMask,
) -> Result<(), Error> {
    let outputs = Outputs {
        writer: io::stderr,
        recorder,
        mask,
    };
    Ok(subscriber(levels, format, outputs)?.try_init()?)
}

/// The outputs of log lines and spans.
struct Outputs<W> {
    writer: W,
    recorder: TraceLayer,
    mask: ProcessMask,
}

fn subscriber<W>(
    levels: &str,
    format: Format,
    outputs: Outputs<W>,
) -> Result<impl Subscriber + Send + Sync, Error>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let targets: Targets = levels.trim().parse().map_err(|source| Error::Levels {
        levels: levels.to_owned(),
        source,
    })?;
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(masked::Masked {
            inner: outputs.writer,
            format,
            mask: outputs.mask,
        })
        .event_format(Lines(format))
        .fmt_fields(NoFields);
    let spans = Targets::new().with_target(TARGET, LevelFilter::INFO);
    Ok(tracing_subscriber::registry()
        .with(outputs.recorder.with_filter(spans))
        .with(lines.with_filter(EventLevels(targets))))
}

/// The levels of events. The spans of traces are enabled at every level, because lines have their ids.
struct EventLevels(Targets);

fn is_of_trace(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && metadata.target() == TARGET
}

impl<S> Filter<S> for EventLevels {
    fn enabled(&self, metadata: &Metadata<'_>, context: &Context<'_, S>) -> bool {
        is_of_trace(metadata) || Filter::enabled(&self.0, metadata, context)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        if is_of_trace(metadata) {
            Interest::always()
        } else {
            Filter::<S>::callsite_enabled(&self.0, metadata)
        }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Filter::<S>::max_level_hint(&self.0).map(|levels| levels.max(LevelFilter::INFO))
    }
}

/// The text with every control character and every mark that changes the writing direction escaped.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_direction_mark(c) {
            line.extend(c.escape_default())
        } else {
            line.push(c)
        }
    }
    line
}

/// Whether a terminal may show the text around the character in another order or on another line.
fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use std::io::Write;
    use std::sync::Arc;

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(levels: &str, format: Format, work: impl FnOnce()) -> String {
        let written = Written::default();
        let target = written.clone();
        let outputs = Outputs {
            writer: move || target.clone(),
            recorder: TraceLayer::default(),
            mask: ProcessMask::default(),
        };
        let subscriber = subscriber(levels, format, outputs).unwrap();
        tracing::subscriber::with_default(subscriber, work);
        String::from_utf8(written.0.lock().clone()).unwrap()
    }

    #[test]
    fn a_level_of_one_target_overrides_the_level_of_all() {
        let text = logged("quiet=error,info", Format::Text { ansi: false }, || {
            tracing::info!(target: "quiet", "hidden");
            tracing::debug!(target: "other", "hidden");
            tracing::info!(target: "other", "shown");
        });
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains("INFO other: shown"), "{text}");
    }

    #[test]
    fn a_line_has_its_fields_and_the_ids_of_its_session_and_trace() {
        let work = || {
            let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
            let session = tracing::info_span!(target: TARGET, "process", session_id = "a41c9e02", trace.parent = parent);
            session.in_scope(|| {
                tracing::warn!(session_id = "own", "its own id precedes that of its span");
                let execution = tracing::info_span!(target: TARGET, "agent", execution_id = "e1", ignored = "x");
                execution.in_scope(|| tracing::warn!(iteration = 2, provider = "p 1", "model call failed"));
            });
            tracing::warn!("outside");
        };
        // The spans count although the level of lines is above theirs.
        let text = logged("warn", Format::Json, work);
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let [own, inside, outside] = lines.as_slice() else {
            panic!("{text}")
        };
        assert_eq!(own["session_id"], "own");
        assert!(
            outside.get("trace_id").is_none() && outside.get("session_id").is_none(),
            "{outside}"
        );
        let mut inside = inside.clone();
        assert!(
            inside
                .as_object_mut()
                .unwrap()
                .remove("timestamp")
                .is_some()
        );
        let expected = serde_json::json!({
            "level": "WARN", "target": "tarsy_telemetry::logs::tests", "message": "model call failed", "iteration": 2,
            "provider": "p 1", "session_id": "a41c9e02", "execution_id": "e1",
            "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "00f067aa0ba902b7",
        });
        assert_eq!(inside, expected);
        let text = logged("warn", Format::Text { ansi: false }, work);
        let line = text.lines().nth(1).unwrap();
        let ids = "session_id=a41c9e02 execution_id=e1 trace_id=4bf92f3577b34da6a3ce929d0e0e4736 span_id=00f067aa0ba902b7";
        let shown = format!(
            " WARN tarsy_telemetry::logs::tests: model call failed iteration=2 provider=\"p 1\" {ids}"
        );
        assert!(line.ends_with(&shown), "{line}");
    }

    #[test]
    fn a_hostile_field_or_message_stays_on_its_line_and_controls_no_terminal() {
        let evil =
            "a\n2026-11-22T00:00:00Z  INFO tarsy::forged: line two\r\u{1b}[2J\u{9b}1m\u{202e}";
        for format in [
            Format::Text { ansi: false },
            Format::Text { ansi: true },
            Format::Json,
        ] {
            let text = logged("info", format, || {
                tracing::warn!(field = evil, shown = %evil, "model call failed: {evil}");
            });
            assert_eq!(text.lines().count(), 1, "{text}");
            let colourless = text.replace("\u{1b}[", "");
            let has_control =
                colourless.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}');
            assert!(!has_control && !text.contains("\u{1b}[2J"), "{text:?}");
        }
    }

    #[test]
    fn a_secret_in_any_part_of_a_log_line_is_masked() {
        let token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
        for format in [
            Format::Text { ansi: false },
            Format::Text { ansi: true },
            Format::Json,
        ] {
            let text = logged("info", format, || {
                let span = tracing::info_span!(target: TARGET, "session", session_id = token);
                span.in_scope(|| {
                    tracing::warn!(field = token, shown = %token, error = "password=hunter2-hunter2", "of {token}");
                });
            });
            assert!(
                !text.contains(token) && !text.contains("hunter2-hunter2"),
                "{text}"
            );
            assert!(text.contains("[masked]"), "{text}");
            if format == Format::Json {
                let line: serde_json::Value = serde_json::from_str(&text).unwrap();
                assert_eq!(line["message"], "of [masked]");
            }
        }
    }

    #[test]
    fn an_invalid_level_is_named_in_the_error() {
        let outputs = Outputs {
            writer: io::sink,
            recorder: TraceLayer::default(),
            mask: ProcessMask::default(),
        };
        let error = subscriber("tarsy=loud", Format::Json, outputs)
            .err()
            .unwrap();
        assert!(
            error
                .to_string()
                .starts_with("log level \"tarsy=loud\" is not understood"),
            "{error}"
        );
    }
}
