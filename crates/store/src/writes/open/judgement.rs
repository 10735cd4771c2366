//! The changes that an alert makes to the session that it joins, as binds of the statement. The core decides them.

use serde_json::Value;
use uuid::Uuid;

use tarsy_core::alert::Severity;
use tarsy_core::alert::aggregate::Aggregate;
use tarsy_core::alert_update::{Change, KnownAlert, MAX_KNOWN, MAX_UPDATES, ReportedAlert};

use crate::rows::{nul, number};

/// The changes that the alert makes to the session that it joins.
#[derive(Clone)]
pub(super) struct Judgement {
    pub(super) max_updates: i32,
    pub(super) max_known: i32,
    /// The last update that it was compared with; `None` before the first comparison.
    pub(super) compared_with: Option<i32>,
    /// The update; `None` if nothing has changed.
    pub(super) report: Option<Value>,
    pub(super) changes: Vec<Change>,
    pub(super) firing: Vec<Uuid>,
    pub(super) resolved: Vec<Uuid>,
    pub(super) severity: &'static str,
}

impl Default for Judgement {
    fn default() -> Self {
        Self {
            max_updates: number::int(MAX_UPDATES),
            max_known: i32::try_from(MAX_KNOWN).unwrap_or(i32::MAX),
            compared_with: None,
            report: None,
            changes: Vec::new(),
            firing: Vec::new(),
            resolved: Vec::new(),
            severity: Severity::Low.as_str(),
        }
    }
}

impl Judgement {
    /// The judgement before the first comparison. Aggregates replace others, so there is always room for one.
    pub(super) fn before(members: &[Uuid]) -> Self {
        let mut judgement = Self::default();
        if members
            .iter()
            .any(|member| Aggregate::containing(member).is_some())
        {
            judgement.max_known = i32::MAX;
        }
        judgement
    }

    /// The changes that the alert makes to a session with this knowledge.
    pub(super) fn new(known: &KnownAlert, reported: &ReportedAlert<'_>) -> Self {
        let mut judgement = Self::before(reported.members);
        judgement.compared_with = Some(number::int(known.updates));
        if let Some((after, update)) = known.update(reported) {
            judgement.changes = update.changes().collect();
            judgement.report = serde_json::to_value(&update).ok().map(nul::replace_json);
            judgement.firing = after.firing;
            judgement.resolved = after.resolved;
            judgement.severity = after.severity.as_str();
        }
        judgement
    }
}
