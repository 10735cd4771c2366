-- A database that fails over without its last commits, or is restored, is behind what workers have done. Only adds, so
-- that workers of the version before go on meanwhile.
CREATE TABLE session_recoveries (
  session_id  uuid        NOT NULL,
  recovery_id uuid        NOT NULL,
  created_at  timestamptz NOT NULL,
  recovery_no integer     NOT NULL,
  kept_upto   integer,
  restored    integer     NOT NULL,
  calls       jsonb       NOT NULL,
  CONSTRAINT session_recoveries_pkey PRIMARY KEY (session_id, recovery_no),
  CONSTRAINT session_recoveries_once UNIQUE (recovery_id)
);
COMMENT ON TABLE session_recoveries IS 'Losses of commits that were noticed, and the calls of the lost steps that may have changed something.';
COMMENT ON COLUMN session_recoveries.kept_upto IS 'Number of the last event that was not lost; null for a loss that was noticed at a write.';
