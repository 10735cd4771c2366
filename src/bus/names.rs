//! Streams, subjects and priorities: every name that another program could see.

use crate::engine::ports::DeadReason;
use crate::investigation::ids::{SessionId, WorkerId};

/// The queue of alerts.
pub const ALERTS: &str = "TARSY_ALERTS";
/// The fan-out of timeline events.
pub const TIMELINE: &str = "TARSY_TIMELINE";
/// Alerts that were given up.
pub const DEAD_LETTERS: &str = "TARSY_DEAD_LETTERS";
/// Requests to a running session.
pub const CONTROL: &str = "TARSY_CONTROL";

/// How an alert is queued. Has nothing to do with how bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Priority {
    /// First.
    Critical,
    /// Second.
    High,
    /// Third; the default of `submit`.
    Normal,
    /// Last, but never starved.
    Low,
}

impl Priority {
    /// All of them, the highest first.
    pub const ALL: [Self; 4] = [Self::Critical, Self::High, Self::Normal, Self::Low];

    /// The word in subjects; the name of its consumer.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }

    /// The priority of a word; `None` for one that names none.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|priority| priority.as_str() == word)
    }

    /// The priority of a subject that an alert can be published on; `None` for any other.
    pub fn of_subject(subject: &str) -> Option<Self> {
        let is_plain = |word: &str| {
            !word.is_empty() && word != "*" && word != ">" && !word.chars().any(|c| c.is_whitespace() || c.is_control())
        };
        let mut words = subject.strip_prefix("tarsy.alerts.")?.split('.');
        let priority = words.next().and_then(Self::parse)?;
        words.all(is_plain).then_some(priority)
    }

    /// `tarsy.alerts.<priority>`: alerts without a suffix.
    pub fn subject(self) -> String {
        format!("tarsy.alerts.{}", self.as_str())
    }

    /// Both forms of its subjects, as its consumer filters them.
    pub fn filters(self) -> [String; 2] {
        [self.subject(), format!("{}.>", self.subject())]
    }
}

/// Every session's events.
pub(super) const ALL_TIMELINES: &str = "tarsy.timeline.*";
/// Every alert that was given up.
pub(super) const ALL_DEAD_LETTERS: &str = "tarsy.dead.*.*";
/// Every request to a session.
pub(super) const ALL_CONTROL: &str = "tarsy.control.*";
/// Every worker that says that it is there.
pub(super) const ALL_WORKERS: &str = "tarsy.workers.*";

/// Where a session's events are published.
pub fn timeline_subject(session: SessionId) -> String {
    format!("tarsy.timeline.{session}")
}

/// Where a session's deltas are shown (core NATS, no stream).
pub fn live_subject(session: SessionId) -> String {
    format!("tarsy.live.{session}")
}

/// Where requests to a session are kept.
pub fn control_subject(session: SessionId) -> String {
    format!("tarsy.control.{session}")
}

/// Where an alert that was given up is kept.
pub fn dead_letter_subject(reason: DeadReason, alert: SessionId) -> String {
    format!("tarsy.dead.{}.{alert}", reason.as_str())
}

/// Where a worker says that it is there (core NATS, no stream).
pub fn worker_subject(worker: WorkerId) -> String {
    format!("tarsy.workers.{worker}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_subject_of_the_queue_has_a_priority() {
        assert_eq!(Priority::of_subject("tarsy.alerts.high"), Some(Priority::High));
        assert_eq!(Priority::of_subject("tarsy.alerts.low.disk-full.eu"), Some(Priority::Low));
        let others =
            ["tarsy.alerts", "tarsy.alerts.", "tarsy.alerts.urgent", "tarsy.alerts.high.", "tarsy.alerts.high.>"];
        for other in
            others.into_iter().chain(["tarsy.alerts.high.a b", "tarsy.alerts.high..a", "tarsy.timeline.high", ""])
        {
            assert_eq!(Priority::of_subject(other), None, "{other}");
        }
    }
}
