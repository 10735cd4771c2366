-- Alerts that join a running session with something new: other firing alerts, a worse severity, resolved ones. Only adds:
-- workers of the version before count such an alert as any other, and release a session whose journal has an update.
CREATE TABLE alert_updates (
  session_id uuid        NOT NULL,
  update_no  integer     NOT NULL,
  alert_id   uuid        NOT NULL,
  created_at timestamptz NOT NULL,
  firing     uuid[]      NOT NULL,
  resolved   uuid[]      NOT NULL,
  severity   text        NOT NULL,
  status     text        NOT NULL,
  report     jsonb       NOT NULL,
  CONSTRAINT alert_updates_pkey PRIMARY KEY (session_id, update_no)
);
COMMENT ON TABLE alert_updates IS 'What alerts that joined a running session have changed, numbered from 1 for each session.';
COMMENT ON COLUMN alert_updates.firing IS 'Hashes of the alerts that fire as far as the session knows, after this update; severity and status likewise.';
COMMENT ON COLUMN alert_updates.resolved IS 'Hashes of the alerts that fired and are resolved, after this update.';
COMMENT ON COLUMN alert_updates.report IS 'What this update has changed, with masked texts, as the agents get it.';

ALTER TABLE alert_sessions
  ADD COLUMN updates integer NOT NULL DEFAULT 0,
  ADD COLUMN covered_updates integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN alert_sessions.updates IS 'Number of the last row of alert_updates.';
COMMENT ON COLUMN alert_sessions.covered_updates IS 'At the end: the last update that the analysis knew; the cooldown answers for no later one.';
