//! `database` and `retention`: the connections of a worker, and how long rows are kept.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::declared::forms::{As, Secs};
use crate::write::is_default;

/// A worker's use of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Database {
    /// The number of connections that the sessions of a worker share. Lease renewals have another one of their own.
    #[schemars(range(min = 1, max = 500))]
    pub pool_size: u32,
}

impl Default for Database {
    fn default() -> Self {
        Self { pool_size: 8 }
    }
}

/// The age at which rows are deleted, counted from the settlement of the investigation; by default never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct Retention {
    /// Sessions with all their rows.
    #[serde(with = "As::<Age>", skip_serializing_if = "is_default")]
    pub sessions: Option<Duration>,
    /// Alerts that opened no session.
    #[serde(with = "As::<Age>", skip_serializing_if = "is_default")]
    pub alerts: Option<Duration>,
    /// The journals of sessions that are kept longer.
    #[serde(with = "As::<Age>", skip_serializing_if = "is_default")]
    pub entries: Option<Duration>,
    /// Records of model calls of sessions that are kept longer.
    #[serde(with = "As::<Age>", skip_serializing_if = "is_default")]
    pub llm_interactions: Option<Duration>,
    /// Records of tool calls of sessions that are kept longer.
    #[serde(with = "As::<Age>", skip_serializing_if = "is_default")]
    pub tool_interactions: Option<Duration>,
    /// Requests for approvals and the votes of people, longer than their sessions; by default as long as these.
    #[serde(with = "As::<Age>", skip_serializing_if = "is_default")]
    pub approvals: Option<Duration>,
}

/// Redeliveries, running commands and cooldown decisions still need rows of this age.
type Age = Secs<3_600, { 3_650 * 24 * 3_600 }>;
/// Longer than a decision about a cooldown takes.
const COOLDOWN_MARGIN: Duration = Duration::from_secs(60);

impl Retention {
    /// The same age for all rows.
    pub fn of_all(age: Duration) -> Self {
        Self {
            sessions: Some(age),
            alerts: Some(age),
            ..Self::default()
        }
    }

    /// Whether all rows are kept forever.
    pub fn keeps_all(&self) -> bool {
        *self == Self::default()
    }

    /// The same ages, but sessions are kept for at least the cooldown, because they may cover later alerts.
    #[must_use]
    pub fn beyond(self, cooldown: Duration) -> Self {
        Self {
            sessions: self
                .sessions
                .map(|age| age.max(cooldown.saturating_add(COOLDOWN_MARGIN))),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_kept_while_its_cooldown_covers_later_alerts() {
        let hour = Duration::from_secs(3_600);
        let retention = Retention::of_all(hour);
        assert_eq!(
            retention.beyond(hour * 24).sessions,
            Some(hour * 24 + COOLDOWN_MARGIN)
        );
        assert_eq!(retention.beyond(hour * 24).alerts, Some(hour));
        assert_eq!(retention.beyond(Duration::ZERO), retention);
        assert!(Retention::default().beyond(hour).keeps_all());
    }
}
