-- `tarsy sessions list --status limited`, as `alert_sessions_status` for the other statuses that few sessions have.
CREATE INDEX CONCURRENTLY IF NOT EXISTS alert_sessions_limited ON alert_sessions (session_id) WHERE status = 'limited';
