ALTER TABLE alert_sessions DROP COLUMN fired_at;
