//! The results of a step of an execution, which one checkpoint commits.

use std::time::Duration;

use chrono::{DateTime, SubsecRound as _, Utc};

use crate::ports::{AskedApproval, ModelCallRecord, ToolCallRecord};
use tarsy_core::execution::entry::Entry;
use tarsy_core::projection::Measured;

/// Entries with their measurements, and the records of the calls that produced them.
#[derive(Default)]
pub(super) struct Performed {
    pub(super) entries: Vec<Entry>,
    pub(super) measured: Measured,
    pub(super) model_calls: Vec<ModelCallRecord>,
    pub(super) tool_calls: Vec<ToolCallRecord>,
    /// The requests that the entries make.
    pub(super) asked: Vec<AskedApproval>,
    /// The session's event number in the snapshot on which the end of a request rests.
    pub(super) seen: Option<u32>,
}

/// The outcome of writing a checkpoint.
pub(super) enum Written {
    Committed,
    /// The store lacks the decision of people that permits it, for this reason.
    Undecided(String),
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The present in microseconds, the precision of the store.
pub(super) fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(6)
}
