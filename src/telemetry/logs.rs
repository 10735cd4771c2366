//! Logs on standard error: text or one JSON object per line, without secrets.
//!
//! One line is one event, because control characters in fields are escaped. The mask is applied to each finished line,
//! so no call of a log macro can forget it.

mod masked;

use std::io;

use tracing_subscriber::Layer as _;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::{MakeWriter, format};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The format of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text { ansi: bool },
    /// One JSON object per line, for programs.
    Json,
}

/// The logs cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The levels cannot be parsed.
    #[error(
        "log level {levels:?} is not understood; accepted: error, warn, info, debug, trace, or a list like tarsy=debug,info"
    )]
    Levels { levels: String, source: tracing_subscriber::filter::ParseError },
    /// The process has a subscriber already.
    #[error("logs are set up already")]
    Installed(#[from] tracing_subscriber::util::TryInitError),
}

pub use masked::hide;

/// Sends the logs of this process to standard error. `levels` is a level (`info`) or a list (`tarsy=debug,info`).
///
/// # Errors
///
/// When `levels` cannot be parsed, or the process has a subscriber already.
pub fn install(levels: &str, format: Format) -> Result<(), Error> {
    subscriber(levels, format, io::stderr)?.try_init().map_err(Error::from)
}

fn subscriber<W>(levels: &str, format: Format, writer: W) -> Result<impl tracing::Subscriber + Send + Sync, Error>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let targets: Targets =
        levels.trim().parse().map_err(|source| Error::Levels { levels: levels.to_owned(), source })?;
    let lines = tracing_subscriber::fmt::layer().with_writer(masked::Masked { inner: writer, format });
    let layer = match format {
        Format::Text { ansi } => {
            let field = format::debug_fn(|writer, field, value| match field.name() {
                "message" => writer.write_str(&one_line(&format!("{value:?}"))),
                name => write!(writer, "{name}={}", one_line(&format!("{value:?}"))),
            });
            lines.with_ansi(ansi).fmt_fields(field.delimited(" ")).boxed()
        }
        Format::Json => lines.json().flatten_event(true).with_current_span(true).with_span_list(false).boxed(),
    };
    Ok(tracing_subscriber::registry().with(layer.with_filter(targets)))
}

/// The text with every control character and every mark that changes the writing direction escaped.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        let is_direction_mark = matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || is_direction_mark { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex, PoisonError};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(levels: &str, format: Format, work: impl FnOnce()) -> String {
        let written = Written::default();
        let target = written.clone();
        let subscriber = subscriber(levels, format, move || target.clone()).unwrap();
        tracing::subscriber::with_default(subscriber, work);
        String::from_utf8(written.0.lock().unwrap().clone()).unwrap()
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
    fn a_json_line_carries_its_fields_and_those_of_its_span() {
        let text = logged("info", Format::Json, || {
            let span = tracing::info_span!("session", session_id = "a41c9e02");
            span.in_scope(|| tracing::warn!(iteration = 2, "model call failed"));
        });
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["level"], "WARN");
        assert_eq!(line["message"], "model call failed");
        assert_eq!(line["iteration"], 2);
        assert_eq!(line["span"]["session_id"], "a41c9e02");
    }

    #[test]
    fn a_hostile_field_or_message_stays_on_its_line_and_controls_no_terminal() {
        let evil = "a\n2026-11-22T00:00:00Z  INFO tarsy::forged: line two\r\u{1b}[2J\u{9b}1m\u{202e}";
        for format in [Format::Text { ansi: false }, Format::Text { ansi: true }, Format::Json] {
            let text = logged("info", format, || {
                tracing::warn!(field = evil, shown = %evil, "model call failed: {evil}");
            });
            assert_eq!(text.lines().count(), 1, "{text}");
            let colourless = text.replace("\u{1b}[", "");
            let is_control = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!colourless.contains(is_control) && !text.contains("\u{1b}[2J"), "{text:?}");
        }
    }

    #[test]
    fn a_secret_in_any_part_of_a_log_line_is_masked() {
        let token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
        for format in [Format::Text { ansi: false }, Format::Text { ansi: true }, Format::Json] {
            let text = logged("info", format, || {
                let span = tracing::info_span!("session", session_id = token);
                span.in_scope(|| {
                    tracing::warn!(field = token, shown = %token, error = "password=hunter2-hunter2", "of {token}");
                });
            });
            assert!(!text.contains(token) && !text.contains("hunter2-hunter2"), "{text}");
            assert!(text.contains("[masked]"), "{text}");
            if format == Format::Json {
                let line: serde_json::Value = serde_json::from_str(&text).unwrap();
                assert_eq!(line["message"], "of [masked]");
            }
        }
    }

    #[test]
    fn an_invalid_level_is_named_in_the_error() {
        let error = subscriber("tarsy=loud", Format::Json, io::sink).err().unwrap();
        assert!(error.to_string().starts_with("log level \"tarsy=loud\" is not understood"), "{error}");
    }
}
