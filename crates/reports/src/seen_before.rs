//! Earlier investigations of the alert of a session, for people and programs.

use chrono::{DateTime, Utc};
use serde::Serialize;

use tarsy_core::alert::Severity;
use tarsy_core::execution::entry::{Mark, with_text};
use tarsy_core::ids::SessionId;
use tarsy_core::past::{Past, PastSession};
use tarsy_core::readable::format;
use tarsy_core::summary::{Sure, fields};

/// The earlier investigations of an alert, the newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SeenBefore {
    /// The number of all of them within `days`.
    pub times: u32,
    /// The days before the session began.
    pub days: u32,
    pub sessions: Vec<SeenSession>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SeenSession {
    pub session_id: SessionId,
    pub finished_at: DateTime<Utc>,
    pub chain: String,
    pub title: String,
    pub severity: Option<Severity>,
    /// The mark on the analysis, a warning for its readers.
    #[serde(flatten, serialize_with = "with_text")]
    pub mark: Option<Mark>,
    /// The word of the model.
    pub sure: Option<Sure>,
    pub cause: Option<String>,
    pub next: Option<String>,
}

impl SeenBefore {
    /// The records with the fields of their analyses.
    pub fn new(past: Past) -> Self {
        Self {
            times: past.total,
            days: past.days,
            sessions: past.sessions.into_iter().map(SeenSession::from).collect(),
        }
    }

    /// `4 times in the 30 days before`.
    pub fn in_words(&self) -> String {
        let times = format::count(self.times, "time");
        match self.days {
            1 => format!("{times} on the day before"),
            days => format!("{times} in the {days} days before"),
        }
    }
}

impl From<PastSession> for SeenSession {
    fn from(past: PastSession) -> Self {
        let fields = past.summary.as_deref().map(fields).unwrap_or_default();
        Self {
            session_id: past.session,
            finished_at: past.finished_at,
            chain: past.chain,
            title: past.title,
            severity: past.severity,
            mark: past.mark,
            sure: fields.sure,
            cause: fields.cause,
            next: fields.next,
        }
    }
}

impl SeenSession {
    /// The words of sureness and mark: `likely, unproven`; empty without any.
    pub fn in_words(&self) -> String {
        let sure = self.sure.map(Sure::as_str);
        let mark = self.mark.map(Mark::word);
        sure.into_iter().chain(mark).collect::<Vec<_>>().join(", ")
    }
}
