DROP INDEX alert_sessions_chain;
