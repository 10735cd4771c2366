ALTER TABLE alert_sessions DROP COLUMN traceparent;
