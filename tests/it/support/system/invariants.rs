//! Invariants of the rows of every session, however often its workers were killed.

use super::TestSystem;

/// The database has lost no commits of the session. Steps that it has lost are taken again, with their events.
const NOTHING_LOST: &str = "session_id NOT IN (SELECT session_id FROM session_recoveries)";

impl TestSystem {
    /// Asserts the invariants of the rows of all sessions that a condition selects.
    pub(crate) fn assert_row_invariants(&self, condition: &str) {
        for (what, sql) in [
            (
                "a row of a superseded epoch",
                format!(
                    "SELECT count(*) FROM (SELECT lease_epoch < max(lease_epoch) OVER \
                 (PARTITION BY session_id ORDER BY session_seq) AS bad FROM timeline_events WHERE {condition}) x WHERE bad"
                ),
            ),
            (
                "a gap in a journal",
                format!(
                    "SELECT count(*) FROM (SELECT execution_id FROM entries WHERE {condition} GROUP BY session_id, \
                 execution_id HAVING count(*) <> max(entry_no)) x"
                ),
            ),
            (
                "an execution without its end",
                format!(
                    "SELECT count(*) FROM agent_executions e WHERE {condition} AND (status = 'running' OR NOT EXISTS \
                 (SELECT FROM entries n WHERE n.session_id = e.session_id AND n.execution_id = e.execution_id AND n.kind = 'ended'))"
                ),
            ),
            (
                "an executive summary that does not precede the end, or is there twice",
                format!(
                    "SELECT count(*) FROM alert_sessions s WHERE {condition} AND {NOTHING_LOST} AND \
                 ARRAY(SELECT t.session_seq || t.content FROM timeline_events t WHERE t.session_id = s.session_id \
                       AND t.event_type = 'executive_summary') \
                 <> ARRAY(SELECT (s.event_seq - 1) || s.executive_summary WHERE s.executive_summary IS NOT NULL)"
                ),
            ),
            (
                "an end whose status is not that of its type",
                format!(
                    "SELECT count(*) FROM timeline_events WHERE {condition} AND \
                 (status = 'completed') <> (event_type = 'session_completed') AND event_type IN \
                 ('session_completed', 'session_failed', 'session_cancelled', 'session_timed_out')"
                ),
            ),
            (
                "an iteration with several attempts, or without one",
                format!(
                    "SELECT count(*) FROM (SELECT 1 FROM timeline_events WHERE {condition} AND iteration IS NOT NULL \
                 AND {NOTHING_LOST} \
                 GROUP BY session_id, execution_id, iteration \
                 HAVING count(DISTINCT attempt) > 1 OR min(coalesce(attempt, 0)) < 1) x"
                ),
            ),
            (
                "a session that is not settled",
                format!(
                    "SELECT count(*) FROM alert_sessions WHERE {condition} AND settled_at IS NULL"
                ),
            ),
        ] {
            assert_eq!(self.database.number(&sql), 0, "{what}");
        }
    }
}
