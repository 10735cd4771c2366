//! Earlier investigations, as records: those of the same alert stand in the first message of an agent, others are found
//! by their words with a tool.
//!
//! A record is about another time. The model gets it as data in a fence, and a citation of it proves nothing. The store
//! reads the records, [`given()`] adds them to a plan, [`tool`] answers a call.

mod given;
mod text;
pub mod tool;
#[cfg(test)]
mod tests;

use chrono::{DateTime, Utc};

use super::alert::Severity;
use super::ids::SessionId;
use super::plan::PastScope;
use super::summary::Mark;
use super::verdicts::PersonVerdict;

pub use given::{given, given_in, without_given};

/// The age in days up to which an earlier investigation counts, where nothing else says so.
pub const DEFAULT_DAYS: u32 = 30;
/// The number of earlier investigations in the first message, where nothing else says so.
pub const DEFAULT_GIVEN: u32 = 3;
/// The largest number of records of one answer.
pub const MAX_LIMIT: u32 = 10;
/// The largest age in days.
pub const MAX_DAYS: u32 = 365;

/// The record of an earlier investigation. It has ended with an analysis, and is no question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastSession {
    pub session: SessionId,
    pub finished_at: DateTime<Utc>,
    pub relation: Relation,
    pub chain: String,
    pub title: String,
    pub severity: Option<Severity>,
    /// The fields of the analysis as lines.
    pub summary: Option<String>,
    /// The mark on the analysis.
    pub mark: Option<Mark>,
    /// The newest verdict of a person.
    pub verdict: Option<PersonVerdict>,
}

/// The relation of an earlier alert to the present one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Their fingerprints are equal.
    SameAlert,
    OtherAlert,
}

/// Earlier investigations, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Past {
    /// The number of all of them within `days`.
    pub total: u32,
    pub days: u32,
    /// The newest ones.
    pub sessions: Vec<PastSession>,
}

/// The investigations to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastQuery {
    pub by: By,
    /// Their largest age.
    pub days: u32,
    /// The largest number of records.
    pub limit: u32,
    pub scope: PastScope,
}

/// The property by which earlier investigations are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    SameAlert,
    /// The search words, as [`all_of`](crate::search::all_of) makes them.
    Words(String),
}

/// The report of one earlier investigation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastReport {
    pub record: PastSession,
    pub analysis: String,
}
