//! The disposition of an alert, as reports show it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The disposition of an alert, as the column `alerts.place` has it.
/// [`Disposition`](tarsy_engine::ports::Disposition) is the same with its details.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DispositionKind {
    /// No worker has decided yet.
    Undecided,
    /// The alert opened the session that has its id.
    Opened,
    /// Another session covers the alert.
    Joined,
    /// The alert ended without an investigation.
    Ended,
    /// The alert is a dead letter.
    Dead,
}

impl fmt::Display for DispositionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
