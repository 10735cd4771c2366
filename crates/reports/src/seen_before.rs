//! Earlier investigations of the alert of a session, for people and programs.

use chrono::{DateTime, Utc};
use serde::Serialize;

use tarsy_core::alert::Severity;
use tarsy_core::execution::entry::{Mark, with_text};
use tarsy_core::ids::SessionId;
use tarsy_core::past::{Past, PastSession};
use tarsy_core::readable::format;
use tarsy_core::summary::{Sure, fields};
use tarsy_core::verdicts::PersonVerdict;

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
    /// The newest verdict of a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<PersonVerdict>,
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
            verdict: past.verdict,
        }
    }
}

impl SeenSession {
    /// The words of sureness, mark and verdict: `likely, unproven, judged wrong by ana`; empty without any.
    pub fn in_words(&self) -> String {
        let sure = self.sure.map(|sure| sure.as_str().to_owned());
        let mark = self.mark.map(|mark| mark.word().to_owned());
        let verdict = self.verdict.as_ref().map(PersonVerdict::in_words);
        let words = sure.into_iter().chain(mark).chain(verdict);
        words.collect::<Vec<_>>().join(", ")
    }
}
