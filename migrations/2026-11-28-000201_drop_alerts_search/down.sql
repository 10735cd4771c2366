CREATE INDEX CONCURRENTLY IF NOT EXISTS alerts_search ON alerts
  USING gin (to_tsvector('simple', left(body, 150000))) WHERE body IS NOT NULL;
