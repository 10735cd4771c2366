//! What an alert is, once it is understood.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A normalised alert: one delivery, one value, however many alerts a webhook bundles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alert {
    /// `alertmanager`, `grafana`, `json` or `text`.
    pub source: String,
    /// What chains are chosen by.
    pub alert_type: String,
    /// For people: the alert's name and what it is about.
    pub title: String,
    /// How bad it is, as the body says; how it was queued where the body says nothing.
    pub severity: Severity,
    /// Whether anything of it still fires.
    pub status: AlertStatus,
    /// What makes two alerts the same: `<form>@<end of the subject>:<what was said>`.
    pub fingerprint: String,
    /// What fires in it, a hash for each alert of a group. A cooldown answers only for an alert whose members the
    /// investigated one had all of. Empty when nothing fires, and for a question.
    pub members: Vec<Uuid>,
    /// A page that says what to do about it.
    pub runbook_url: Option<String>,
    /// What the investigation sees: cleaned, masked text.
    pub text: String,
}

/// How bad an alert is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Can wait.
    Low,
    /// The default.
    #[default]
    Normal,
    /// Soon.
    High,
    /// Now.
    Critical,
}

impl Severity {
    /// All of them, the worst first.
    pub const ALL: [Self; 4] = [Self::Critical, Self::High, Self::Normal, Self::Low];

    /// The word in subjects, the store and `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// A word that names no severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("accepted: critical, high, normal, low")]
pub struct UnknownSeverity;

impl FromStr for Severity {
    type Err = UnknownSeverity;

    fn from_str(word: &str) -> Result<Self, UnknownSeverity> {
        Self::ALL.into_iter().find(|severity| severity.as_str() == word).ok_or(UnknownSeverity)
    }
}

/// Whether an alert still fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertStatus {
    /// It does.
    Firing,
    /// All of it is over.
    Resolved,
}
