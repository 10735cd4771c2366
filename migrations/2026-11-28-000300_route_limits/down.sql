DROP TABLE route_turns;
UPDATE alert_sessions SET status = 'failed' WHERE status = 'limited';
ALTER TABLE alert_sessions DROP COLUMN limited_route;
