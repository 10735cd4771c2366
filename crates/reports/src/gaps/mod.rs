//! Gaps: what investigations could not see, and the calls of tools that gave them nothing.
//!
//! Nothing here is judged by a model: the lines `Not seen` are those of the analyses, and the calls are counted by
//! their results in the journal.

mod group;

use diesel::Queryable;
use serde::Serialize;

use tarsy_core::ids::SessionId;

use crate::stored::Stored;

pub use group::{UnseenGroup, grouped};

/// Gaps of the newest sessions within a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Gaps {
    /// Sessions that were looked at.
    pub sessions: i64,
    /// There are older sessions within the time, which were not looked at.
    pub has_older: bool,
    /// The things that analyses name as not seen, the most frequent first.
    pub not_seen: Vec<UnseenGroup>,
    /// Tools with calls that gave nothing, the one with the most such calls first.
    pub tools: Vec<ToolGaps>,
    /// Tools that models called and that they do not have, the most frequent first.
    pub unknown: Vec<UnknownTool>,
}

/// The line `Not seen` of one session.
#[derive(Clone, Debug, PartialEq, Eq, Queryable)]
pub struct Unseen {
    #[diesel(deserialize_as = Stored<SessionId>)]
    pub session_id: SessionId,
    /// The lines of its summary.
    pub summary: String,
}

/// The calls of one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Queryable, Serialize)]
pub struct ToolGaps {
    /// The full name, `server.tool`.
    pub tool: String,
    /// All calls, also those with a result.
    pub calls: i64,
    /// Calls that succeeded with no text.
    pub empty: i64,
    /// Calls without an answer in time.
    pub timed_out: i64,
    /// Calls that were not sent, because their arguments do not fit the schema of the tool.
    pub refused_arguments: i64,
    /// Calls that were not sent, because the server could not be reached.
    pub unavailable: i64,
    /// Calls that the tool answered with an error, and other failures.
    pub failed: i64,
}

/// A tool that models called and that they do not have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Queryable, Serialize)]
pub struct UnknownTool {
    /// The name as the model wrote it.
    pub name: String,
    pub calls: i64,
    /// Sessions with such a call.
    pub sessions: i64,
}
