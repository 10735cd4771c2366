//! Normalises the body of a delivery to an [`Alert`]: webhooks of monitoring systems, any other JSON, and plain text.
//!
//! [`Intake`] finds the source of a body. A declared source is read by its declaration, Alertmanager and Grafana by
//! code, and any other JSON by the names of its fields. Every body gives alerts or one of two errors. Queues and
//! masking are not known here.

pub mod headers;
pub mod decode;
mod read;
mod envelope;
mod batch;
mod reduce;
mod declared;
mod webhook;
mod plain;
mod reading;
mod why;
mod subject;
mod fingerprint;
mod identity;
mod outline;
mod clean;
mod question;
pub mod guess;

pub use clean::MAX_TEXT_BYTES;
pub use decode::ContentHeaders;
pub use envelope::{cloud_event, event_grid_answer};
pub use question::question;
pub use read::{Intake, MAX_PARTS, Part};
pub use reduce::{LeftOut, Reduced};
pub use why::sentences;

use chrono::{DateTime, Utc};

use super::alert::{Alert, Severity};

/// The largest body that is read, also after decompression. What is stored of a large one is less: [`Intake::reduced`].
pub const MAX_BODY_BYTES: usize = 32 * 1024 * 1024;

/// The hints in the headers and the subject of a message. Each takes precedence over the body, except the priority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    pub alert_type: Option<String>,
    pub fingerprint: Option<String>,
    pub runbook_url: Option<String>,
    pub title: Option<String>,
    /// The name of the source. An unknown one counts as absent.
    pub source: Option<String>,
    /// The index of the alert in the body.
    pub part: Option<u32>,
    /// The priority of the queue, which is the severity of a body that has none.
    pub priority: Option<Severity>,
    /// The time when the message was received. An end of an alert after it is none yet; without it no time is an end.
    pub received_at: Option<DateTime<Utc>>,
    /// The end of the subject, after the priority; may be empty. A part of the fingerprint.
    pub suffix: String,
    /// The tenant of a sender that serves several, such as Mimir. A part of the fingerprint.
    pub tenant: Option<String>,
    /// `Content-Type` and `Content-Encoding` of the bytes.
    pub content_type: Option<String>,
    pub content_encoding: Option<String>,
    /// The parts that the body lacks because it was too large.
    pub left_out: Option<LeftOut>,
}

impl Hints {
    /// The headers by which the bytes are decoded.
    pub fn content(&self) -> ContentHeaders<'_> {
        ContentHeaders {
            content_type: self.content_type.as_deref(),
            encoding: self.content_encoding.as_deref(),
        }
    }
}

/// The reason why a body is no alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntakeError {
    #[error("body is no text, and not compressed with gzip or deflate")]
    Undecodable,
    /// White space, `""`, `null`, `{}` or `[]`.
    #[error("body has no content")]
    Empty,
}

/// The alert type of a body without a name.
pub(crate) const GENERIC: &str = "generic";

/// Normalises a body without the sources of a configuration.
///
/// # Errors
/// When the body is not text, or is empty.
pub fn normalise(body: &[u8], hints: &Hints) -> Result<Alert, IntakeError> {
    Intake::default().normalise(body, hints)
}

/// The hash of a fingerprint, for one with a secret in it.
pub fn hashed(fingerprint: &str) -> String {
    fingerprint::of_body(fingerprint.as_bytes())
}

#[cfg(test)]
mod tests;
