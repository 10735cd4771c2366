DROP INDEX alert_sessions_created;
