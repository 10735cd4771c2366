//! The lines of lists of sessions.

use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::prelude::Queryable;
use serde::Serialize;

use super::ShownStatus;
use crate::engine::ports::RunStatus;
use crate::investigation::alert::Severity;
use crate::investigation::execution::entry::{Mark, StopReason, with_text};
use crate::investigation::ids::SessionId;
use crate::investigation::timeline::EventType;

use super::Tokens;

/// Which sessions to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// The newest sessions, at most this many.
    pub limit: u32,
    /// Only those with this status.
    pub status: Option<RunStatus>,
    /// Only those that were opened within this time, by the database's clock.
    pub since: Option<Duration>,
    /// Only those whose alert or analysis has these words, in the syntax of web searches.
    pub search: Option<String>,
}

/// A session, as a list shows it.
#[derive(Clone, Debug, PartialEq, Queryable, Serialize)]
pub struct SessionLine {
    pub session_id: SessionId,
    pub created_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
    #[diesel(deserialize_as = ShownStatus)]
    pub status: RunStatus,
    pub stop_reason: Option<StopReason>,
    /// What readers have to know of the analysis.
    #[serde(flatten, serialize_with = "with_text")]
    pub mark: Option<Mark>,
    pub severity: Option<Severity>,
    pub title: Option<String>,
    /// Selects the chain.
    pub alert_type: Option<String>,
    pub chain: String,
    /// The name of the worker that has or had its last lease.
    pub worker: String,
    /// The investigation that a follow-up question is about.
    pub parent_id: Option<SessionId>,
}

/// A page of a list of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionPage {
    pub filter: SessionFilter,
    /// Only sessions whose ids come before this one: the page after the one that ended with it. Ids are in the order of
    /// time.
    pub before: Option<SessionId>,
}

/// A session, as a page of the list shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionEntry {
    #[serde(flatten)]
    pub line: SessionLine,
    /// The cause that the analysis names, in one line.
    pub cause: Option<String>,
    /// The reason when there is no analysis.
    pub error: Option<String>,
    /// Alerts with the same fingerprint are alike.
    pub fingerprint: Option<String>,
    /// The number of its last event.
    pub last_seq: i32,
    /// How many workers have had it, one after another, from 1. The same worker counts again after a takeover.
    pub owners: i64,
    pub tool_calls: i64,
    /// The tokens of all its model calls.
    pub tokens: Tokens,
    /// Alerts that joined it.
    pub joined: i32,
    /// Questions about it that have a session.
    pub questions: i64,
    /// The last event, while the session runs.
    pub last_event: Option<LastEvent>,
}

/// What a running session did last.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LastEvent {
    pub event_type: EventType,
    pub created_at: DateTime<Utc>,
    /// The beginning of its content.
    pub content: String,
}

/// The number of sessions of each status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StatusCounts {
    pub running: i64,
    pub completed: i64,
    pub failed: i64,
    pub cancelled: i64,
    pub timed_out: i64,
}
