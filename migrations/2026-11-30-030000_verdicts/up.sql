-- What people say about analyses. Only adds a table: workers of the version before know nothing of it. No foreign key, as
-- for every row that a fenced statement writes.
CREATE TABLE verdicts (
  verdict_id uuid        NOT NULL,
  session_id uuid        NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  person     text        NOT NULL,
  account    text        NOT NULL,
  channel    text        NOT NULL,
  verdict    text        NOT NULL,
  cause      text,
  action     text,
  CONSTRAINT verdicts_pkey PRIMARY KEY (verdict_id)
);
COMMENT ON TABLE verdicts IS 'One row per verdict of a person about the analysis of an ended session. The newest of all counts; none is changed or deleted while its session is kept.';
COMMENT ON COLUMN verdicts.verdict_id IS 'The id of its message (Nats-Msg-Id): the same for each delivery.';
COMMENT ON COLUMN verdicts.person IS 'The name in approvals.people, else <channel>:<account>.';
COMMENT ON COLUMN verdicts.verdict IS 'Not checked here, as every word of the program: right, partly, wrong. It shows no other word.';
COMMENT ON COLUMN verdicts.cause IS 'The real cause, in the words of the person; masked, at most 2,000 characters.';
COMMENT ON COLUMN verdicts.action IS 'What the person did; masked, at most 2,000 characters.';
-- The verdicts of a session in their order.
CREATE INDEX verdicts_of_session ON verdicts (session_id, created_at);
