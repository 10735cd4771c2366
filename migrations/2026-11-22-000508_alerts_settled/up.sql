-- The same of alerts that opened no session.
CREATE INDEX CONCURRENTLY IF NOT EXISTS alerts_settled ON alerts (settled_at) WHERE settled_at IS NOT NULL AND place <> 'opened';
