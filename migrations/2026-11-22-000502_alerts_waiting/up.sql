-- All that a sweep looks for among alerts, without a column that a delivery changes: a delivery then stays within the
-- page (HOT) and does not compute the text index again. Takes the place of alerts_loose, which the next migration drops.
CREATE INDEX CONCURRENTLY IF NOT EXISTS alerts_waiting ON alerts (alert_id) WHERE settled_at IS NULL AND place <> 'opened';
