ALTER TABLE alert_sessions DROP COLUMN review;
