//! Reads for a resumed run, for the publisher, for follow-up questions and for the commands.

pub(crate) mod record;
pub(crate) mod attempts;
pub(crate) mod result;
pub(crate) mod alert_updates;
pub(crate) mod history;
pub(crate) mod thread;
pub(crate) mod filter;
pub(crate) mod list;
pub(crate) mod pages;
pub(crate) mod resolve;
pub(crate) mod report;
