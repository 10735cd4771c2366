//! Decodes the bytes of a body into JSON or text: compression, character set, and JSON as people and templates write
//! it.
//!
//! Valid input is never changed. Everything else is tried only after the strict way has failed, in time and memory that
//! grow with the length of the body, and each departure is noted as a [`Repair`]. Sources are not known here.

mod charset;
mod compression;
pub(super) mod form;
pub(super) mod json;
pub(super) mod lenient;
mod repair;
mod xml;

use std::borrow::Cow;

use serde_json::Value;

use super::IntakeError;
use crate::sources::Repair;

/// A decompressed body is cut here.
pub const MAX_INFLATED_BYTES: usize = super::MAX_BODY_BYTES;

/// The headers of a message about its bytes. Either may be wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentHeaders<'h> {
    /// `Content-Type`, of which only the character set counts.
    pub content_type: Option<&'h str>,
    /// `Content-Encoding`, by which a body is compressed.
    pub encoding: Option<&'h str>,
}

/// A body that can be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded<'b> {
    /// The text without a byte order mark.
    pub text: Cow<'b, str>,
    /// The JSON in the text; `None` for a plain text.
    pub value: Option<Value>,
    /// The repairs in the order in which they were made, each once.
    pub repairs: Vec<Repair>,
}

/// Decodes a body.
///
/// # Errors
/// When the bytes are no text in any character set that is tried.
pub fn decode<'b>(body: &'b [u8], headers: ContentHeaders<'_>) -> Result<Decoded<'b>, IntakeError> {
    let mut repairs = Vec::new();
    let text = text(body, headers, &mut repairs)?;
    let value = json::parse(&text, &mut repairs).or_else(|| xml::parse(&text, &mut repairs));
    let value = value.or_else(|| form::parse(&text, &mut repairs));
    Ok(Decoded {
        text,
        value,
        repairs,
    })
}

/// The text of a body, without its compression.
pub(super) fn text<'b>(
    body: &'b [u8],
    headers: ContentHeaders<'_>,
    repairs: &mut Vec<Repair>,
) -> Result<Cow<'b, str>, IntakeError> {
    let label = headers.content_type.and_then(charset::label);
    let text = match compression::inflate(body, headers.encoding, repairs) {
        Cow::Borrowed(bytes) => charset::text(bytes, label, repairs),
        Cow::Owned(bytes) => charset::owned_text(bytes, label, repairs).map(Cow::Owned),
    };
    text.ok_or(IntakeError::Undecodable)
}

/// Whether a `Content-Type` names a character set other than UTF-8.
pub fn has_charset(content_type: &str) -> bool {
    charset::label(content_type)
        .is_some_and(|label| !label.is_empty() && !label.eq_ignore_ascii_case("utf-8"))
}

/// Notes a repair once.
pub(super) fn note(repairs: &mut Vec<Repair>, repair: Repair) {
    if !repairs.contains(&repair) {
        repairs.push(repair);
    }
}

#[cfg(test)]
mod tests;
