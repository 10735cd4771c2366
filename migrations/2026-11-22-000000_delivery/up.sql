-- What the cooldown and the sweeper need. Only adds, so that workers of the version before go on meanwhile; the columns
-- they do not know have defaults. The indexes are not built CONCURRENTLY: that waits for every other migrator, which
-- waits for this one's advisory lock.

ALTER TABLE alerts
  ADD COLUMN delivered_at timestamptz NOT NULL DEFAULT now(),
  ADD COLUMN swept_at     timestamptz,
  ADD COLUMN attempts     integer     NOT NULL DEFAULT 1;
COMMENT ON COLUMN alerts.delivered_at IS 'When it came last, by the database''s clock.';
COMMENT ON COLUMN alerts.swept_at IS 'When a sweep gave this alert, or the session it opened, to a worker: no other gets it soon after.';
COMMENT ON COLUMN alerts.attempts IS 'Deliveries that began to read it while it was undecided and were not spared, the present one included.';
COMMENT ON COLUMN alerts.last_delivery IS 'Random per delivery and per sparing: a write that is sent again after a lost reply does not count twice.';

-- All that a sweep looks for among alerts: few rows at any time. Those that opened a session are found by the session.
CREATE INDEX alerts_loose ON alerts (delivered_at) WHERE settled_at IS NULL AND place <> 'opened';
DROP INDEX alerts_unsettled;

ALTER TABLE alert_sessions ADD COLUMN retry_of uuid;
COMMENT ON COLUMN alert_sessions.retry_of IS 'The session that this one does again.';

-- The newest completed session of a fingerprint. Nothing that checkpoints or renewals change is in it.
CREATE INDEX alert_sessions_completed ON alert_sessions (fingerprint, finished_at) WHERE status = 'completed';
