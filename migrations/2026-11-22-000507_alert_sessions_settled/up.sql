-- What is old enough to be pruned, oldest first. A session enters it once, when it is settled.
CREATE INDEX CONCURRENTLY IF NOT EXISTS alert_sessions_settled ON alert_sessions (settled_at) WHERE settled_at IS NOT NULL;
