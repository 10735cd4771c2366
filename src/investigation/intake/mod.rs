//! From the bytes of a delivery to an [`Alert`]: what monitoring systems send, and anything else that is text.
//!
//! Pure and total: any bytes give an alert or one of two reasons why not. It knows nothing of queues and masking.

mod clean;
mod fingerprint;
pub mod headers;
mod outline;
mod plain;
mod question;
mod severity;
mod subject;
mod webhook;

use serde_json::Value;
use uuid::Uuid;

pub use clean::MAX_TEXT_BYTES;
pub use question::question;

use super::alert::{Alert, AlertStatus, Severity};

/// What the producer says beside the body, in headers and with the subject. Each wins over the body, but for the priority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// The alert type.
    pub alert_type: Option<String>,
    /// What makes two alerts the same.
    pub fingerprint: Option<String>,
    /// A page that says what to do.
    pub runbook_url: Option<String>,
    /// For people: the alert's name and what it is about.
    pub title: Option<String>,
    /// How it was queued: the severity of a body that does not say one.
    pub priority: Option<Severity>,
    /// The end of the subject that it came on, behind the priority; empty for none. A part of the fingerprint.
    pub suffix: String,
}

/// Why a body is no alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntakeError {
    /// Not UTF-8.
    #[error("body is not UTF-8 text")]
    Undecodable,
    /// Nothing in it: white space, `""`, `null`, `{}`, `[]`.
    #[error("body has no content")]
    Empty,
}

/// The alert type of a body that has no name.
pub const GENERIC: &str = "generic";

const MAX_NAME_CHARS: usize = 200;
const MAX_TITLE_CHARS: usize = 160;
const MAX_URL_CHARS: usize = 2_048;

/// What one kind of body says, before hints and bounds.
#[derive(Debug)]
struct Reading {
    source: &'static str,
    name: Option<String>,
    title: String,
    severity: Option<Severity>,
    resolved: bool,
    fingerprint: Option<String>,
    /// Empty: what fires is the text.
    members: Vec<Uuid>,
    runbook_url: Option<String>,
    text: String,
}

/// Understands a body.
///
/// # Errors
/// When the body is not text, or nothing is in it.
pub fn normalise(body: &[u8], hints: &Hints) -> Result<Alert, IntakeError> {
    let text = std::str::from_utf8(body).map_err(|_| IntakeError::Undecodable)?;
    let text = text.trim_start_matches('\u{feff}');
    let reading = match serde_json::from_str(text) {
        Ok(value) => of_json(&value)?,
        // No JSON, or nested too deeply to be read as such.
        Err(_) => plain::read_text(text),
    };
    let content = clean::text(&reading.text);
    if content.trim().is_empty() {
        return Err(IntakeError::Empty);
    }
    let name = said(hints.alert_type.as_deref(), MAX_NAME_CHARS)
        .or_else(|| said(reading.name.as_deref(), MAX_NAME_CHARS))
        .unwrap_or_else(|| GENERIC.to_owned());
    let fingerprint = match said(hints.fingerprint.as_deref(), usize::MAX) {
        Some(header) => fingerprint::of_header(&hints.suffix, header),
        None => {
            let said = said(reading.fingerprint.as_deref(), usize::MAX).unwrap_or_else(|| fingerprint::of_body(body));
            fingerprint::scoped(reading.source, &hints.suffix, said)
        }
    };
    let members = match (reading.resolved, reading.members.is_empty()) {
        (true, _) => Vec::new(),
        (false, true) => vec![fingerprint::member_of_text(&content)],
        (false, false) => fingerprint::group(reading.members),
    };
    Ok(Alert {
        source: reading.source.to_owned(),
        title: said(hints.title.as_deref(), MAX_TITLE_CHARS)
            .or_else(|| said(Some(&reading.title), MAX_TITLE_CHARS))
            .unwrap_or_else(|| name.clone()),
        alert_type: name,
        severity: reading.severity.or(hints.priority).unwrap_or_default(),
        status: if reading.resolved { AlertStatus::Resolved } else { AlertStatus::Firing },
        fingerprint,
        members,
        runbook_url: url(hints.runbook_url.as_deref()).or_else(|| url(reading.runbook_url.as_deref())),
        text: content,
    })
}

fn of_json(value: &Value) -> Result<Reading, IntakeError> {
    match value {
        Value::Null => Err(IntakeError::Empty),
        Value::String(text) => Ok(plain::read_text(text)),
        Value::Bool(_) | Value::Number(_) => Ok(plain::read_text(&value.to_string())),
        Value::Array(items) if items.is_empty() => Err(IntakeError::Empty),
        Value::Object(fields) if fields.is_empty() => Err(IntakeError::Empty),
        Value::Array(_) | Value::Object(_) => Ok(webhook::read(value).unwrap_or_else(|| plain::read_json(value))),
    }
}

/// A fingerprint in the place of one that must not be kept as it is: the same for the same.
pub fn hashed(fingerprint: &str) -> String {
    fingerprint::of_body(fingerprint.as_bytes())
}

/// One clean line, if anything is left of it.
fn said(text: Option<&str>, max_chars: usize) -> Option<String> {
    text.map(|text| clean::line(text, max_chars)).filter(|text| !text.is_empty())
}

fn url(text: Option<&str>) -> Option<String> {
    let url = said(text, MAX_URL_CHARS)?;
    let web = url.starts_with("https://") || url.starts_with("http://");
    (web && !url.contains(char::is_whitespace) && url.chars().count() < MAX_URL_CHARS).then_some(url)
}

#[cfg(test)]
mod tests;
