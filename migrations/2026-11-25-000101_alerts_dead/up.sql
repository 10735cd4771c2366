-- The web server lists the newest alerts that were given up, which are few among many.
CREATE INDEX CONCURRENTLY IF NOT EXISTS alerts_dead ON alerts (alert_id) WHERE place = 'dead';
