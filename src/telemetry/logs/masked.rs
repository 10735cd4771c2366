//! The mask over a line of the log, on its way to the writer.

use std::io::{self, Write};
use std::sync::{PoisonError, RwLock};

use serde_json::Value;
use tracing_subscriber::fmt::MakeWriter;

use super::Format;
use crate::investigation::mask::Mask;

/// What is hidden beside the patterns. A log is of the whole process, and so is this: the configuration that names most of
/// it is read when lines are written already.
static KNOWN: RwLock<Option<Mask>> = RwLock::new(None);

/// Hides what this mask hides from now on, in every line of this process.
pub fn hide(mask: Mask) {
    *KNOWN.write().unwrap_or_else(PoisonError::into_inner) = Some(mask);
}

fn known() -> Mask {
    KNOWN.read().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default()
}

/// Makes writers that mask.
#[derive(Debug)]
pub(super) struct Masked<M> {
    inner: M,
    format: Format,
}

impl<M> Masked<M> {
    pub(super) fn new(inner: M, format: Format) -> Self {
        Self { inner, format }
    }
}

impl<'w, M: MakeWriter<'w>> MakeWriter<'w> for Masked<M> {
    type Writer = Line<M::Writer>;

    fn make_writer(&'w self) -> Self::Writer {
        Line { inner: self.inner.make_writer(), format: self.format }
    }
}

/// Takes one whole line a write, as the layer gives it.
#[derive(Debug)]
pub(super) struct Line<W> {
    inner: W,
    format: Format,
}

impl<W: Write> Write for Line<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = String::from_utf8_lossy(bytes);
        let masked = match self.format {
            Format::Text { .. } => known().apply(&line).into_owned(),
            Format::Json => json(&known(), &line),
        };
        let ended = masked.ends_with('\n') || !line.ends_with('\n');
        self.inner.write_all(masked.as_bytes())?;
        if !ended {
            self.inner.write_all(b"\n")?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// An object stays an object: its texts are masked, one by one. C1 controls and marks that turn the direction of
/// writing, which JSON allows, are escaped.
fn json(mask: &Mask, line: &str) -> String {
    let has_marks =
        |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let masked = match serde_json::from_str::<Value>(line) {
        Ok(value) if mask.apply(line) != line => format!("{}\n", texts(mask, value)),
        Ok(_) => line.to_owned(),
        Err(_) => mask.apply(line).into_owned(),
    };
    if !masked.contains(has_marks) {
        return masked;
    }
    let one = |c: char| if has_marks(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    masked.chars().map(one).collect()
}

fn texts(mask: &Mask, value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(mask.apply(&text).into_owned()),
        Value::Array(items) => items.into_iter().map(|item| texts(mask, item)).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(key, value)| {
                // The key may say what the text alone does not.
                let shown = value.as_str().map(|text| named(mask, &key, text));
                (key, shown.unwrap_or_else(|| texts(mask, value)))
            })
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

fn named(mask: &Mask, key: &str, text: &str) -> Value {
    let pair = format!("{key}={text}");
    let masked = mask.apply(&pair);
    let shown = masked.strip_prefix(key).and_then(|rest| rest.strip_prefix('='));
    Value::String(shown.map_or_else(|| mask.apply(text).into_owned(), ToOwned::to_owned))
}
