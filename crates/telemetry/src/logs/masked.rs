//! A writer that masks secrets in each log line.

use std::io::{self, Write};

use serde_json::Value;
use tracing_subscriber::fmt::MakeWriter;

use super::{Format, is_direction_mark};
use crate::process_mask::ProcessMask;
use tarsy_mask::Mask;

/// Makes a masking writer for each line.
#[derive(Debug)]
pub(super) struct Masked<M> {
    pub(super) inner: M,
    pub(super) format: Format,
    pub(super) mask: ProcessMask,
}

impl<'w, M: MakeWriter<'w>> MakeWriter<'w> for Masked<M> {
    type Writer = Line<M::Writer>;

    fn make_writer(&'w self) -> Self::Writer {
        Line {
            inner: self.inner.make_writer(),
            format: self.format,
            mask: self.mask.current(),
        }
    }
}

/// Expects one whole line per write, which is how the layer writes.
#[derive(Debug)]
pub(super) struct Line<W> {
    inner: W,
    format: Format,
    mask: Mask,
}

impl<W: Write> Write for Line<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = String::from_utf8_lossy(bytes);
        let masked = match self.format {
            Format::Text { .. } => self.mask.apply(&line).into_owned(),
            Format::Json => json(&self.mask, &line),
        };
        let has_newline = masked.ends_with('\n') || !line.ends_with('\n');
        self.inner.write_all(masked.as_bytes())?;
        if !has_newline {
            self.inner.write_all(b"\n")?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Masks each string of the object, so that the line stays JSON. JSON allows C1 control characters and marks that
/// change the writing direction: these are escaped.
fn json(mask: &Mask, line: &str) -> String {
    let masked = match serde_json::from_str::<Value>(line) {
        Ok(value) if mask.apply(line) != line => format!("{}\n", texts(mask, value)),
        Ok(_) => line.to_owned(),
        Err(_) => mask.apply(line).into_owned(),
    };
    if !masked.contains(is_escaped) {
        return masked;
    }
    let mut escaped = String::with_capacity(masked.len());
    for c in masked.chars() {
        if is_escaped(c) {
            escaped += &format!("\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

fn is_escaped(c: char) -> bool {
    c != '\n' && (c.is_control() || is_direction_mark(c))
}

fn texts(mask: &Mask, value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(mask.apply(&text).into_owned()),
        Value::Array(items) => items.into_iter().map(|item| texts(mask, item)).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(key, value)| {
                // The key may show that the text is a secret, which the text alone may not.
                let shown = value.as_str().map(|text| mask_with_key(mask, &key, text));
                (key, shown.unwrap_or_else(|| texts(mask, value)))
            })
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

fn mask_with_key(mask: &Mask, key: &str, text: &str) -> Value {
    let pair = format!("{key}={text}");
    let masked = mask.apply(&pair);
    let shown = masked
        .strip_prefix(key)
        .and_then(|rest| rest.strip_prefix('='));
    Value::String(shown.map_or_else(|| mask.apply(text).into_owned(), ToOwned::to_owned))
}
