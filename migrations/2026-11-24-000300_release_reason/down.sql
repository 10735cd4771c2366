ALTER TABLE alert_sessions DROP COLUMN release_reason;
