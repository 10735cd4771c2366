-- `tarsy sessions list --status`: a status that few sessions have was searched for in all of them. A sweep looks for
-- running sessions and must not use this index, which would keep their entries until a vacuum.
CREATE INDEX CONCURRENTLY IF NOT EXISTS alert_sessions_status ON alert_sessions (status, session_id)
WHERE status IN ('failed', 'cancelled', 'timed_out');
