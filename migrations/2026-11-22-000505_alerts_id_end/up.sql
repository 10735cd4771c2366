-- People name a session by the last characters of its id. Reversed, an end is a beginning, and a beginning is a range.
CREATE INDEX CONCURRENTLY IF NOT EXISTS alerts_id_end ON alerts (reverse(right(alert_id::text, 12)) COLLATE "C");
