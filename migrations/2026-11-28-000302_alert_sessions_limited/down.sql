DROP INDEX alert_sessions_limited;
