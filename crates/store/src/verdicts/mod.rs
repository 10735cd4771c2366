//! Verdicts of people about analyses: the statement that records one, the reads of a session's verdicts, and their
//! export.

pub(crate) mod export;
pub(crate) mod read;
pub(crate) mod record;
