//! Reads for a resumed run, for the publisher, for follow-up questions and for the commands.

pub mod record;
pub mod approvals;
pub mod attempts;
pub mod result;
pub mod alert_updates;
pub mod history;
pub mod event_search;
pub mod thread;
pub mod past;
pub mod filter;
pub mod list;
pub mod pages;
pub mod resolve;
pub mod report;
pub mod gaps;
