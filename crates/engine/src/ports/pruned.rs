//! Pruning: rows that are deleted because of their age.

use std::collections::BTreeMap;

/// The tables that rows are deleted from.
pub const PRUNED_TABLES: [&str; 17] = [
    "alerts",
    "alert_sessions",
    "alert_updates",
    "session_plans",
    "session_recoveries",
    "session_words",
    "skill_texts",
    "stages",
    "agent_executions",
    "entries",
    "timeline_events",
    "llm_interactions",
    "tool_interactions",
    "notifications",
    "approvals",
    "approval_votes",
    "verdicts",
];

/// The numbers of deleted rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Rows by [`PRUNED_TABLES`]; only tables that lost some.
    pub rows: BTreeMap<&'static str, u64>,
}

impl Pruned {
    /// Counts further rows.
    pub fn add(&mut self, more: &Self) {
        for (table, count) in &more.rows {
            *self.rows.entry(table).or_default() += count;
        }
    }
}
