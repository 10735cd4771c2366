//! The entry about alerts that joined the session.

use serde::{Deserialize, Serialize};

use crate::alert::{AlertStatus, Severity};

/// The changes by alerts that joined the session, without those that the execution already knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertUpdated {
    /// The report: lines of the alerts, clean, masked and bounded. The model reads it between fences.
    pub content: String,
    /// Number of the last update of the session in it.
    pub upto: u32,
    /// Alerts that began to fire.
    pub firing: u32,
    /// Alerts that were resolved.
    pub resolved: u32,
    /// The severity, if it is worse than any before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// The status, if it has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<AlertStatus>,
}
