-- A storm of one fingerprint may not fill the timeline of its session: alerts that joined are counted, and from the
-- tenth on only some of them get an event. Only adds: workers of the version before leave the counts as they are.
ALTER TABLE alert_sessions
  ADD COLUMN joined_alerts integer NOT NULL DEFAULT 0,
  ADD COLUMN resolved_alerts integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN alert_sessions.joined_alerts IS 'Firing alerts that joined; each below 10, then 10, 20, 50, 100, 200, 500 … has an event.';
COMMENT ON COLUMN alert_sessions.resolved_alerts IS 'The same of resolved alerts.';
