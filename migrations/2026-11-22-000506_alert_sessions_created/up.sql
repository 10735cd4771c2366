-- Lists of what began since a time. The id says when it was made, which a producer may have done long before.
CREATE INDEX CONCURRENTLY IF NOT EXISTS alert_sessions_created ON alert_sessions (created_at);
