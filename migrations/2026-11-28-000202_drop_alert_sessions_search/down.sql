CREATE INDEX CONCURRENTLY IF NOT EXISTS alert_sessions_search ON alert_sessions
  USING gin (to_tsvector('simple', left(final_analysis, 150000))) WHERE final_analysis IS NOT NULL;
