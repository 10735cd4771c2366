ALTER TABLE alert_sessions DROP COLUMN joined_alerts, DROP COLUMN resolved_alerts;
