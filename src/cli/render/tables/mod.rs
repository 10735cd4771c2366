//! Tables for a terminal, built from `table`: lists of sessions, one session, requests for approvals, dead letters,
//! checks.

pub(crate) mod table;
pub mod list;
pub mod show;
pub mod calls;
pub mod past;
pub mod approvals;
pub mod found;
pub mod dead_letters;
pub mod checks;
pub mod gaps;
pub mod models;
pub mod queue;
pub mod destinations;
pub mod sources;
