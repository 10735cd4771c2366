-- The list of sessions is filtered by chain, and offers the chains that there are. A chain does not change.
CREATE INDEX CONCURRENTLY IF NOT EXISTS alert_sessions_chain ON alert_sessions (chain, session_id);
