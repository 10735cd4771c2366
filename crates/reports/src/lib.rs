//! Reports: values of the store for people and programs, about one alert or for the lines of lists.
//!
//! The store reads them, `cli/` prints them, and `web/` serves them. Diesel's derive maps the columns of a statement
//! to their fields in order; the statements are in `store/reads/`. Their JSON is that of `--json`: fields may be
//! added, and none is removed.

#![cfg_attr(
    test,
    allow(
        clippy::too_many_lines,
        reason = "a test reads from its top to its end"
    )
)]

pub mod columns;
pub mod words;
pub mod document;
pub mod calls;
pub mod json;
mod tokens;
mod disposition;
mod id_match;
mod alert;
mod approvals;
mod sessions;
mod judged;
mod seen_before;
mod shown_status;
pub mod stored;
pub mod system;
mod dead_alert;
mod check;
mod event_search;
mod excerpt;
pub mod gaps;

pub use alert::{
    AlertReport, AlertUpdateReport, ExecutionReport, JoinedAlert, ModelCallReport, ModelReport,
    QuestionReport, SessionReport, StageReport, ToolCallReport,
};
pub use approvals::{
    ApprovalDetail, ApprovalFilter, ApprovalRow, AskedAlert, AskedCall, CitedResult, ExportedVote,
    FreezeReport, OtherRequest, RequestState, Requests, VotePage, VoteReport,
};
pub use check::{Check, Verdict};
pub use dead_alert::DeadAlert;
pub use disposition::DispositionKind;
pub use event_search::{EventSearch, FoundEvent, FoundEvents, Match, Place};
pub use excerpt::{Excerpt, ExcerptPage};
pub use id_match::IdMatch;
pub use judged::{JudgedAlert, JudgedProvider, JudgedSession};
pub use seen_before::{SeenBefore, SeenSession};
pub use sessions::{
    Facets, Label, LastEvent, MAX_FACETS, NoLabel, Questions, SessionEntry, SessionFilter,
    SessionLine, SessionPage, StatusCounts,
};
pub use shown_status::ShownStatus;
pub use tokens::Tokens;
