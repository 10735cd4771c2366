//! `database` and `retention`: the connections of a worker, and how long rows are kept.

use std::time::Duration;

use crate::config::read::reader::Map;

/// A worker's use of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    pub(crate) fn read(mut map: Map<'_>) -> Self {
        let pool_size = map.get("pool_size").and_then(|field| field.number(1..=500));
        map.finish();
        Self { pool_size: pool_size.unwrap_or_else(|| Self::default().pool_size) }
    }
}

/// The age at which rows are deleted, counted from the settlement of the investigation; `None` keeps them forever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Sessions with all their rows.
    pub sessions: Option<Duration>,
    /// Alerts that opened no session.
    pub alerts: Option<Duration>,
    /// The journals of sessions that are kept longer.
    pub entries: Option<Duration>,
    /// Records of model calls of sessions that are kept longer.
    pub llm_interactions: Option<Duration>,
    /// Records of tool calls of sessions that are kept longer.
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
        Self { sessions: Some(age), alerts: Some(age), ..Self::default() }
    }

    /// Whether all rows are kept forever.
    pub fn keeps_all(&self) -> bool {
        *self == Self::default()
    }

    /// The same ages, but sessions are kept for at least the cooldown, because they may cover later alerts.
    #[must_use]
    pub fn beyond(self, cooldown: Duration) -> Self {
        Self { sessions: self.sessions.map(|age| age.max(cooldown.saturating_add(COOLDOWN_MARGIN))), ..self }
    }

    /// The ages with the names of their keys.
    pub fn each(&self) -> [(&'static str, Option<Duration>); 5] {
        [
            ("sessions", self.sessions),
            ("alerts", self.alerts),
            ("entries", self.entries),
            ("llm_interactions", self.llm_interactions),
            ("tool_interactions", self.tool_interactions),
        ]
    }

    pub(crate) fn read(mut map: Map<'_>) -> Self {
        let mut age = |key| map.duration(key, MIN_HOURS * 3_600..=MAX_DAYS * 24 * 3_600);
        let retention = Self {
            sessions: age("sessions"),
            alerts: age("alerts"),
            entries: age("entries"),
            llm_interactions: age("llm_interactions"),
            tool_interactions: age("tool_interactions"),
        };
        map.finish();
        retention
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_kept_while_its_cooldown_covers_later_alerts() {
        let hour = Duration::from_secs(3_600);
        let retention = Retention::of_all(hour);
        assert_eq!(retention.beyond(hour * 24).sessions, Some(hour * 24 + COOLDOWN_MARGIN));
        assert_eq!(retention.beyond(hour * 24).alerts, Some(hour));
        assert_eq!(retention.beyond(Duration::ZERO), retention);
        assert!(Retention::default().beyond(hour).keeps_all());
    }
}
