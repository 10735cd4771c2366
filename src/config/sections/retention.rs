//! `database` and `retention`: how many connections a worker has, and how long rows are kept.

use std::time::Duration;

use crate::config::read::reader::Map;

/// The database, as a worker uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Database {
    /// Connections of one worker that its sessions share. Renewals of leases have one more of their own.
    pub pool_size: u32,
}

impl Default for Database {
    fn default() -> Self {
        Self { pool_size: 8 }
    }
}

impl Database {
    pub(crate) fn read(mut map: Map<'_>) -> Self {
        let pool_size = map.get("pool_size").and_then(|field| field.number(1, 500));
        map.finish();
        Self { pool_size: pool_size.unwrap_or_else(|| Self::default().pool_size) }
    }
}

/// How long rows are kept after an investigation was settled, by table; `None` for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Sessions with everything that belongs to them.
    pub sessions: Option<Duration>,
    /// Alerts that opened no session of their own.
    pub alerts: Option<Duration>,
    /// The journals of sessions that are kept longer.
    pub entries: Option<Duration>,
    /// Their records of model calls.
    pub llm_interactions: Option<Duration>,
    /// Their records of tool calls.
    pub tool_interactions: Option<Duration>,
}

/// A redelivery, a command and a cooldown that is just being decided find what they are about.
const MIN_HOURS: u64 = 1;
const MAX_DAYS: u64 = 3_650;
/// A decision about a cooldown that has begun is over by then.
const MARGIN: Duration = Duration::from_secs(60);

impl Retention {
    /// The same age for all rows.
    pub fn of_all(age: Duration) -> Self {
        Self { sessions: Some(age), alerts: Some(age), ..Self::default() }
    }

    /// Whether everything is kept for ever.
    pub fn keeps_all(&self) -> bool {
        *self == Self::default()
    }

    /// The same, but no session goes that can answer for a later alert.
    #[must_use]
    pub fn beyond(self, cooldown: Duration) -> Self {
        Self { sessions: self.sessions.map(|age| age.max(cooldown.saturating_add(MARGIN))), ..self }
    }

    /// The ages by the names of their keys.
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
        let mut age = |key| map.duration(key, MIN_HOURS * 3_600, MAX_DAYS * 24 * 3_600);
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
    fn a_session_is_kept_for_as_long_as_it_answers_for_later_alerts() {
        let hour = Duration::from_secs(3_600);
        let retention = Retention::of_all(hour);
        assert_eq!(retention.beyond(hour * 24).sessions, Some(hour * 24 + MARGIN));
        assert_eq!(retention.beyond(hour * 24).alerts, Some(hour));
        assert_eq!(retention.beyond(Duration::ZERO), retention);
        assert!(Retention::default().beyond(hour).keeps_all());
    }
}
