DROP INDEX alert_sessions_settled;
