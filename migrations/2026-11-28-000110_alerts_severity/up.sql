-- The list of sessions is filtered by the severity of their alerts, newest first.
CREATE INDEX CONCURRENTLY IF NOT EXISTS alerts_severity ON alerts (severity, alert_id) WHERE severity IS NOT NULL;
