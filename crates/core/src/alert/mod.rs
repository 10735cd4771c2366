//! The normalised alert: type, severity, status, fingerprint and text.

pub mod policy;
pub mod refs;

use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use self::refs::Refs;

pub mod aggregate;

/// A normalised alert. A webhook with several alerts is one value, too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alert {
    /// `alertmanager`, `grafana`, `json` or `text`.
    pub source: String,
    /// Chains are chosen by it.
    pub alert_type: String,
    /// The title for people: the alert's name and its subject.
    pub title: String,
    /// The severity that the body gives; otherwise that of the priority of its queue.
    pub severity: Severity,
    /// The word for it in the body, if it is a plain one and no word of [`Severity`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity_word: Option<String>,
    /// Firing if one of its alerts is.
    pub status: AlertStatus,
    /// The reason why an alert with the status `ignored` asks for nothing; one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored_because: Option<String>,
    /// The time when its status changed, by the clock of the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<DateTime<Utc>>,
    /// The same for repetitions of an alert: `<form>@<end of the subject>:<key>`.
    pub fingerprint: String,
    /// A hash for each firing alert of a group, or one for several ([`aggregate`]). A cooldown covers only an alert all
    /// of whose members belonged to the investigated one. Empty when no alert fires, and for a question.
    pub members: Vec<Uuid>,
    /// A report about each alert in it. Empty for a question, and for an alert that was read back from the store.
    #[serde(skip)]
    pub reports: Vec<MemberReport>,
    /// A page with instructions for this alert.
    pub runbook_url: Option<String>,
    /// The sender's own ids of what it is about.
    #[serde(default, skip_serializing_if = "Refs::is_empty")]
    pub refs: Refs,
    /// The text that the investigation sees, cleaned and masked.
    pub text: String,
}

/// A report about one alert of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberReport {
    /// The hash of this alert in [`Alert::members`].
    pub member: Uuid,
    pub status: AlertStatus,
    /// The report as one clean and masked line.
    pub text: String,
}

/// The severity of an alert, from the least to the most urgent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Severity {
    Low,
    #[default]
    Normal,
    High,
    Critical,
}

crate::words!(pub Severity);

/// The longest word of a severity that is shown beside the severity, in characters.
const MAX_WORD_CHARS: usize = 20;

impl Severity {
    /// The word of a body for this severity, if a message of tarsy may have it: a short one of ASCII letters and digits
    /// that differs from the severity.
    pub fn plain_word(self, word: &str) -> Option<String> {
        let word = word.trim();
        let is_plain = word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '-'));
        let is_short = (1..=MAX_WORD_CHARS).contains(&word.len());
        let differs = !word.eq_ignore_ascii_case(self.as_str());
        (is_plain && is_short && differs).then(|| word.to_owned())
    }

    /// All of them, the worst first.
    pub const ALL: [Self; 4] = [Self::Critical, Self::High, Self::Normal, Self::Low];
}

/// A word that names no severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("accepted: critical, high, normal, low")]
pub struct UnknownSeverity;

impl FromStr for Severity {
    type Err = UnknownSeverity;

    fn from_str(word: &str) -> Result<Self, UnknownSeverity> {
        Self::ALL
            .into_iter()
            .find(|severity| severity.as_str() == word)
            .ok_or(UnknownSeverity)
    }
}

/// The status that an alert reports about its condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum AlertStatus {
    #[default]
    Firing,
    Resolved,
    /// A person has taken it over.
    Acknowledged,
    /// A person tries the configuration of the sender.
    Test,
    /// The message asks for nothing: [`Alert::ignored_because`].
    Ignored,
}

crate::words!(pub AlertStatus, pub ALL);
