//! `database` and `retention`: the connections of a worker, and how long rows are kept.

use std::time::Duration;

use serde::Serialize;

use crate::read::reader::Map;
use crate::write::{is_default, written};

/// A worker's use of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Database {
    /// The number of connections that the sessions of a worker share. Lease renewals have another one of their own.
    pub pool_size: u32,
}

impl Default for Database {
    fn default() -> Self {
        Self { pool_size: 8 }
    }
}

impl Database {
    pub(crate) fn read(map: &mut Map<'_>) -> Self {
        let pool_size = map.number("pool_size", 1..=500);
        Self {
            pool_size: pool_size.unwrap_or_else(|| Self::default().pool_size),
        }
    }
}

/// The age at which rows are deleted, counted from the settlement of the investigation; `None` keeps them forever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Retention {
    /// Sessions with all their rows.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub sessions: Option<Duration>,
    /// Alerts that opened no session.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub alerts: Option<Duration>,
    /// The journals of sessions that are kept longer.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub entries: Option<Duration>,
    /// Records of model calls of sessions that are kept longer.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub llm_interactions: Option<Duration>,
    /// Records of tool calls of sessions that are kept longer.
    #[serde(serialize_with = "written", skip_serializing_if = "is_default")]
    pub tool_interactions: Option<Duration>,
}

/// Redeliveries, running commands and cooldown decisions still need rows of this age.
const MIN_HOURS: u64 = 1;
const MAX_DAYS: u64 = 3_650;
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

    pub(crate) fn read(map: &mut Map<'_>) -> Self {
        let mut age = |key| map.duration(key, MIN_HOURS * 3_600..=MAX_DAYS * 24 * 3_600);
        Self {
            sessions: age("sessions"),
            alerts: age("alerts"),
            entries: age("entries"),
            llm_interactions: age("llm_interactions"),
            tool_interactions: age("tool_interactions"),
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
