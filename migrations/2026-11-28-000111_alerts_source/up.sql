-- The list of sessions is filtered by the source of their alerts, and offers the sources that there are.
CREATE INDEX CONCURRENTLY IF NOT EXISTS alerts_source ON alerts (source, alert_id) WHERE source IS NOT NULL;
