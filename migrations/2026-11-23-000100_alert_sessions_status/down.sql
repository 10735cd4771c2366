DROP INDEX alert_sessions_status;
