//! Normalises the body of a delivery to an [`Alert`]: webhooks of monitoring systems, any other JSON, and plain text.
//!
//! Every body gives an alert or one of two errors. Queues and masking are not known here.

pub mod headers;
mod webhook;
mod plain;
mod subject;
mod severity;
mod fingerprint;
mod outline;
mod clean;
mod question;

use serde_json::Value;
use uuid::Uuid;

pub use clean::MAX_TEXT_BYTES;
pub use question::question;

use super::alert::aggregate::{Aggregate, AggregateKind};
use super::alert::{Alert, AlertStatus, MemberReport, Severity};

/// What the headers and the subject of a message say. Each takes precedence over the body, except the priority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    pub alert_type: Option<String>,
    pub fingerprint: Option<String>,
    pub runbook_url: Option<String>,
    pub title: Option<String>,
    /// From the queue: the severity of a body that has none.
    pub priority: Option<Severity>,
    /// The end of the subject, after the priority; may be empty. A part of the fingerprint.
    pub suffix: String,
}

/// Why a body is no alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntakeError {
    #[error("body is not UTF-8 text")]
    Undecodable,
    /// White space, `""`, `null`, `{}` or `[]`.
    #[error("body has no content")]
    Empty,
}

/// The alert type of a body without a name.
pub const GENERIC: &str = "generic";

const MAX_NAME_CHARS: usize = 200;
const MAX_TITLE_CHARS: usize = 160;
/// Of the line about one alert of a group.
const MAX_REPORT_CHARS: usize = 400;
const MAX_URL_CHARS: usize = 2_048;

/// A parsed body, before hints and bounds are applied.
#[derive(Debug, Default)]
struct Reading {
    source: &'static str,
    name: Option<String>,
    title: String,
    severity: Option<Severity>,
    status: AlertStatus,
    fingerprint: Option<String>,
    /// Empty: the text is the only member.
    members: Vec<Uuid>,
    /// Of each alert of a group; empty for a single alert.
    reports: Vec<MemberReport>,
    runbook_url: Option<String>,
    text: String,
}

/// Normalises a body.
///
/// # Errors
/// When the body is not text, or is empty.
pub fn normalise(body: &[u8], hints: &Hints) -> Result<Alert, IntakeError> {
    let text = std::str::from_utf8(body).map_err(|_| IntakeError::Undecodable)?;
    let text = text.trim_start_matches('\u{feff}');
    let reading = match serde_json::from_str::<Value>(text) {
        Ok(mut value) => {
            value.sort_all_objects();
            of_json(&value)?
        }
        // No JSON, or nested too deeply.
        Err(_) => plain::read_text(text),
    };
    let content = clean::text(&reading.text);
    if content.trim().is_empty() {
        return Err(IntakeError::Empty);
    }
    let name = clean_line(hints.alert_type.as_deref(), MAX_NAME_CHARS)
        .or_else(|| clean_line(reading.name.as_deref(), MAX_NAME_CHARS))
        .unwrap_or_else(|| GENERIC.to_owned());
    let fingerprint = match clean_line(hints.fingerprint.as_deref(), usize::MAX) {
        Some(header) => fingerprint::of_header(&hints.suffix, header),
        None => {
            let key =
                clean_line(reading.fingerprint.as_deref(), usize::MAX).unwrap_or_else(|| fingerprint::of_body(body));
            fingerprint::scoped(reading.source, &hints.suffix, key)
        }
    };
    let members = match reading.status {
        AlertStatus::Resolved | AlertStatus::Test | AlertStatus::Ignored => Vec::new(),
        AlertStatus::Firing | AlertStatus::Acknowledged if reading.members.is_empty() => {
            vec![fingerprint::member_of_text(&content)]
        }
        AlertStatus::Firing | AlertStatus::Acknowledged => fingerprint::group(reading.members),
    };
    let reports = reports(reading.reports, &members, &content);
    Ok(Alert {
        source: reading.source.to_owned(),
        title: clean_line(hints.title.as_deref(), MAX_TITLE_CHARS)
            .or_else(|| clean_line(Some(&reading.title), MAX_TITLE_CHARS))
            .unwrap_or_else(|| name.clone()),
        alert_type: name,
        severity: reading.severity.or(hints.priority).unwrap_or_default(),
        status: reading.status,
        ignored_because: None,
        at: None,
        fingerprint,
        members,
        reports,
        runbook_url: url(hints.runbook_url.as_deref()).or_else(|| url(reading.runbook_url.as_deref())),
        text: content,
    })
}

/// A line for each alert. A group that is one hash has one line, and so has an alert that is no group.
fn reports(read: Vec<MemberReport>, members: &[Uuid], content: &str) -> Vec<MemberReport> {
    let group = Aggregate::find(members, AggregateKind::Group);
    let line = |text: &str| clean::line(text, MAX_REPORT_CHARS);
    match (members, group) {
        ([only], None) if read.is_empty() => {
            vec![MemberReport { member: *only, status: AlertStatus::Firing, text: line(content) }]
        }
        ([only], Some(Aggregate { count, .. })) => {
            let text = format!("a group of {count} alerts, too many to compare one by one");
            vec![MemberReport { member: *only, status: AlertStatus::Firing, text }]
        }
        _ => read.into_iter().map(|report| MemberReport { text: line(&report.text), ..report }).collect(),
    }
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

/// The hash of a fingerprint, for one with a secret in it.
pub fn hashed(fingerprint: &str) -> String {
    fingerprint::of_body(fingerprint.as_bytes())
}

/// One clean line; `None` if it is empty.
fn clean_line(text: Option<&str>, max_chars: usize) -> Option<String> {
    text.map(|text| clean::line(text, max_chars)).filter(|text| !text.is_empty())
}

fn url(text: Option<&str>) -> Option<String> {
    let url = clean_line(text, MAX_URL_CHARS)?;
    let web = url.starts_with("https://") || url.starts_with("http://");
    (web && !url.contains(char::is_whitespace) && url.chars().count() < MAX_URL_CHARS).then_some(url)
}

#[cfg(test)]
mod tests;
