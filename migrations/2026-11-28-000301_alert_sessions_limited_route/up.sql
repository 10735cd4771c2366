-- The sessions of a route in the last hour are counted before each of its sessions opens. Neither column changes.
CREATE INDEX CONCURRENTLY IF NOT EXISTS alert_sessions_limited_route ON alert_sessions (limited_route, created_at)
WHERE limited_route IS NOT NULL;
