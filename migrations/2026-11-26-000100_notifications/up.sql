-- Messages about investigations to chats and programs: one row for each session, route and moment, written with the
-- session. Only adds: workers of the version before write no rows, and their sessions have none.
CREATE TABLE notifications (
  session_id uuid        NOT NULL,
  route      text        NOT NULL,
  moment     text        NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  due_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  closed_at  timestamptz,
  lease      uuid,
  attempts   integer     NOT NULL DEFAULT 0,
  in_doubt   boolean     NOT NULL DEFAULT false,
  outcome    text,
  reason     text,
  receipt    text,
  CONSTRAINT notifications_pkey PRIMARY KEY (session_id, route, moment),
  CONSTRAINT notifications_moment_known CHECK (moment IN ('started', 'ended')),
  CONSTRAINT notifications_outcome_known CHECK (outcome IN ('sent', 'filtered', 'given_up')),
  CONSTRAINT notifications_closed CHECK ((closed_at IS NULL) = (outcome IS NULL))
);
CREATE INDEX notifications_waiting ON notifications (route, due_at) WHERE closed_at IS NULL;
COMMENT ON TABLE notifications IS 'The outbox of notifications: a row for each session, route and moment.';
COMMENT ON COLUMN notifications.session_id IS 'The session, or the alert that was given up without one.';
COMMENT ON COLUMN notifications.moment IS 'started: due at once; ended: due when the session has ended.';
COMMENT ON COLUMN notifications.due_at IS 'No worker takes the row before; while a worker sends it, the end of its lease.';
COMMENT ON COLUMN notifications.lease IS 'Random for each attempt: only its result is recorded.';
COMMENT ON COLUMN notifications.in_doubt IS 'The answer to an attempt is not known, so the provider may have the message.';
COMMENT ON COLUMN notifications.reason IS 'Why the last attempt failed, or why the row was closed without a message.';
COMMENT ON COLUMN notifications.receipt IS 'What the provider calls the message, for replies to it.';
