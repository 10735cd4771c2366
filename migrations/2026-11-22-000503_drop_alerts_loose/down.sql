CREATE INDEX CONCURRENTLY IF NOT EXISTS alerts_loose ON alerts (delivered_at) WHERE settled_at IS NULL AND place <> 'opened';
