//! The lines of lists of sessions.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use chrono::{DateTime, Utc};
use diesel::prelude::Queryable;
use serde::Serialize;

use super::ShownStatus;
use super::stored::{Stored, StoredOption};
use tarsy_core::alert::Severity;
use tarsy_core::clock::Moment;
use tarsy_core::execution::entry::{Mark, StopReason, with_text};
use tarsy_core::ids::SessionId;
use tarsy_core::timeline::EventType;
use tarsy_core::verdicts::Rating;
use tarsy_engine::ports::RunStatus;

use super::Tokens;

/// A filter for the list of sessions. An empty list of words selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// The newest sessions, at most this many.
    pub limit: u32,
    /// Selects sessions with one of these statuses; empty for all.
    pub statuses: Vec<RunStatus>,
    /// Selects sessions that wait for a person, in addition to those of `statuses`.
    pub waits_for_approval: bool,
    /// Selects sessions whose alert has one of these severities; empty for all.
    pub severities: Vec<Severity>,
    /// Selects sessions of one of these chains; empty for all.
    pub chains: Vec<String>,
    /// Selects sessions whose alert is of one of these sources; empty for all.
    pub sources: Vec<String>,
    /// Selects sessions whose alert has each of these labels.
    pub labels: Vec<Label>,
    /// Selects sessions that were opened at this time or later, by the database's clock.
    pub since: Option<Moment>,
    /// Selects sessions that were opened before this time.
    pub until: Option<Moment>,
    /// Selects sessions whose alert or analysis has these words, in the syntax of web searches.
    pub search: Option<String>,
    pub questions: Questions,
    /// Selects questions about one of these investigations.
    pub about: Vec<SessionId>,
}

/// Whether a list has the sessions that answer questions about investigations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Questions {
    #[default]
    Shown,
    Hidden,
}

tarsy_core::words!(pub Questions, pub ALL);

/// A label of an alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    pub key: String,
    pub value: String,
}

/// A text that is no label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("accepted: key=value, for example namespace=checkout")]
pub struct NoLabel;

/// The longest key and value of a label, in bytes.
const MAX_LABEL: usize = 300;

impl FromStr for Label {
    type Err = NoLabel;

    /// Reads `key=value`. Quotes around the value, as in a query of Prometheus, are not part of it.
    fn from_str(text: &str) -> Result<Self, NoLabel> {
        let (key, value) = text.split_once('=').ok_or(NoLabel)?;
        let key = key.trim();
        let value = value.trim();

        let value = value
            .strip_prefix('"')
            .and_then(|value| value.strip_suffix('"'))
            .unwrap_or(value);
        let is_key = key.chars().any(char::is_alphanumeric) && key.len() <= MAX_LABEL;
        let is_value = !value.is_empty() && value.len() <= MAX_LABEL;
        if !is_key || !is_value || text.chars().any(char::is_control) {
            return Err(NoLabel);
        }
        Ok(Self {
            key: key.to_owned(),
            value: value.to_owned(),
        })
    }
}

impl Display for Label {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}={}", self.key, self.value)
    }
}

/// The words that sessions of the store have, for choices: each at most [`MAX_FACETS`] in the order of the alphabet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facets {
    pub chains: Vec<String>,
    pub sources: Vec<String>,
}

/// Words of one kind that are offered.
pub const MAX_FACETS: usize = 50;

/// A session, as a list shows it.
#[derive(Clone, Debug, PartialEq, Queryable, Serialize)]
pub struct SessionLine {
    #[diesel(deserialize_as = Stored<SessionId>)]
    pub session_id: SessionId,
    pub created_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
    #[diesel(deserialize_as = ShownStatus)]
    pub status: RunStatus,
    #[diesel(deserialize_as = StoredOption<StopReason>)]
    pub stop_reason: Option<StopReason>,
    /// The mark on the analysis, a warning for its readers.
    #[serde(flatten, serialize_with = "with_text")]
    #[diesel(deserialize_as = StoredOption<Mark>)]
    pub mark: Option<Mark>,
    #[diesel(deserialize_as = StoredOption<Severity>)]
    pub severity: Option<Severity>,
    pub title: Option<String>,
    /// Selects the chain.
    pub alert_type: Option<String>,
    pub chain: String,
    /// The name of the worker that has or had its last lease.
    pub worker: String,
    /// The investigation that a follow-up question is about.
    #[diesel(deserialize_as = StoredOption<SessionId>)]
    pub parent_id: Option<SessionId>,
    /// The newest verdict of a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[diesel(deserialize_as = StoredOption<Rating>)]
    pub verdict: Option<Rating>,
}

/// A page of a list of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionPage {
    pub filter: SessionFilter,
    /// The id before which all sessions of the page come: the last one of the previous page. Ids are in the order of
    /// time.
    pub before: Option<SessionId>,
}

/// A session, as a page of the list shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionEntry {
    #[serde(flatten)]
    pub line: SessionLine,
    /// Whether it waits for a person, without a worker. Its status is `running`.
    pub waits_for_approval: bool,
    /// The cause that the analysis names, in one line.
    pub cause: Option<String>,
    /// The reason when there is no analysis.
    pub error: Option<String>,
    /// Alerts with the same fingerprint are alike.
    pub fingerprint: Option<String>,
    /// The number of its last event.
    pub last_seq: i32,
    /// The number of workers that have run it, one after another, from 1. The same worker counts again after a
    /// takeover.
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

/// The last event of a running session.
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
    /// Those of `running` that wait for a person.
    pub waiting_for_approval: i64,
    pub completed: i64,
    pub failed: i64,
    pub cancelled: i64,
    pub timed_out: i64,
    pub limited: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_a_key_and_a_value() {
        for (text, key, value) in [
            ("namespace=checkout", "namespace", "checkout"),
            (" namespace = \"check out\" ", "namespace", "check out"),
            ("query=a=b", "query", "a=b"),
            (
                "app.kubernetes.io/name=shop",
                "app.kubernetes.io/name",
                "shop",
            ),
        ] {
            let label: Label = text.parse().unwrap();
            assert_eq!((label.key.as_str(), label.value.as_str()), (key, value));
            assert_eq!(label.to_string().parse(), Ok(label));
        }
        for text in ["", "namespace", "=x", "_=x", "x=", "x=\"\"", "x=a\nb"] {
            assert_eq!(text.parse::<Label>(), Err(NoLabel), "{text}");
        }
    }
}
