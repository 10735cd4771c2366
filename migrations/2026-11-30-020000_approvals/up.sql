-- Approvals of tool calls. Only adds tables: workers of the version before know none of them, and refuse to claim a session
-- whose plan needs them. No foreign keys, as for every row that a fenced statement writes.
CREATE TABLE approvals (
  session_id    uuid        NOT NULL,
  execution_id  uuid        NOT NULL,
  asked_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at    timestamptz NOT NULL,
  outcome_at    timestamptz,
  closed_at     timestamptz,
  valid_for     interval    NOT NULL,
  event_seq     integer     NOT NULL,
  quorum        smallint    NOT NULL,
  votes         smallint    NOT NULL DEFAULT 0,
  other_person  boolean     NOT NULL,
  call_id       text        NOT NULL,
  tool          text        NOT NULL,
  policy        text        NOT NULL,
  arguments     text        NOT NULL,
  call_sha256   bytea       NOT NULL,
  schema_sha256 bytea       NOT NULL,
  why           text        NOT NULL,
  evidence      integer[]   NOT NULL,
  origins       jsonb       NOT NULL,
  on_resolved   text        NOT NULL,
  channels      text[]      NOT NULL,
  decided_by    text[]      NOT NULL DEFAULT '{}',
  outcome       text,
  channel       text,
  comment       text,
  closed_as     text,
  CONSTRAINT approvals_pkey PRIMARY KEY (session_id, event_seq),
  CONSTRAINT approvals_call UNIQUE (session_id, execution_id, call_id)
);
COMMENT ON TABLE approvals IS 'One row per call that waits or has waited for a person. It is open while outcome and closed_at are empty, it has not expired and its session runs.';
COMMENT ON COLUMN approvals.event_seq IS 'The number of the event that asks; with the session it names the request.';
COMMENT ON COLUMN approvals.valid_for IS 'The time from the decision to the sending of the call.';
COMMENT ON COLUMN approvals.arguments IS 'As they will be sent, byte for byte; people see all of them.';
COMMENT ON COLUMN approvals.call_sha256 IS 'The hash of tool, schema and arguments. A vote names the hash that its person saw.';
COMMENT ON COLUMN approvals.votes IS 'Approvals that counted, added up on the locked row.';
COMMENT ON COLUMN approvals.decided_by IS 'The people whose votes counted; after a denial the one who denied.';
COMMENT ON COLUMN approvals.outcome IS 'The decision of people: approved, denied, denied_session. Final.';
COMMENT ON COLUMN approvals.outcome_at IS 'The time of the decision, as its channel stored it: valid_for counts from here.';
COMMENT ON COLUMN approvals.channel IS 'The channel of the vote that decided.';
COMMENT ON COLUMN approvals.closed_as IS 'The outcome that the journal has. Only the owner of the session closes a request, once.';
-- The requests that wait, for their limit and for lists.
CREATE INDEX approvals_open ON approvals (expires_at) WHERE outcome IS NULL AND closed_at IS NULL;

CREATE TABLE approval_votes (
  vote_id      uuid        NOT NULL,
  session_id   uuid        NOT NULL,
  at           timestamptz NOT NULL DEFAULT clock_timestamp(),
  event_seq    integer     NOT NULL,
  seen_updates integer     NOT NULL,
  person       text        NOT NULL,
  account      text        NOT NULL,
  groups       text[]      NOT NULL,
  channel      text        NOT NULL,
  address      text,
  verdict      text        NOT NULL,
  comment      text,
  seen_sha256  bytea       NOT NULL,
  refused      text,
  CONSTRAINT approval_votes_pkey PRIMARY KEY (vote_id)
);
COMMENT ON TABLE approval_votes IS 'One row per vote of a person, also those that did not count.';
COMMENT ON COLUMN approval_votes.vote_id IS 'The id of its message: a vote that is delivered again finds its row.';
COMMENT ON COLUMN approval_votes.address IS 'The address from which the channel saw the person.';
COMMENT ON COLUMN approval_votes.seen_updates IS 'The last update of the alert that the person saw.';
COMMENT ON COLUMN approval_votes.refused IS 'The reason why it does not count; empty if it does.';
CREATE INDEX approval_votes_request ON approval_votes (session_id, event_seq);
CREATE INDEX approval_votes_at ON approval_votes (at);
-- One person is one voice.
CREATE UNIQUE INDEX approval_votes_person ON approval_votes (session_id, event_seq, person)
  WHERE refused IS NULL AND verdict = 'approve';

CREATE TABLE approval_freezes (
  freeze_id uuid        NOT NULL,
  at        timestamptz NOT NULL DEFAULT clock_timestamp(),
  until     timestamptz,
  ended_at  timestamptz,
  is_end    boolean     NOT NULL,
  person    text        NOT NULL,
  reason    text,
  ended_by  text,
  CONSTRAINT approval_freezes_pkey PRIMARY KEY (freeze_id)
);
COMMENT ON TABLE approval_freezes IS 'One row per message that begins or ends a freeze of all changes.';
COMMENT ON COLUMN approval_freezes.until IS 'The end that was set at the beginning; empty until a person ends it.';
COMMENT ON COLUMN approval_freezes.ended_at IS 'The time at which a person ended it. A message that ends freezes has its own time here.';
-- The freezes that a person has not ended: a few rows.
CREATE INDEX approval_freezes_active ON approval_freezes (at) WHERE ended_at IS NULL;

COMMENT ON COLUMN alert_sessions.lease_owner IS 'Empty after a release, and while the session waits for a person: then lease_expires_at, in the future, is the time at which the first request expires.';
COMMENT ON COLUMN timeline_events.event_type IS 'Not checked here: Postgres parses a list of words again for each statement. The program writes llm_thinking, llm_response, llm_tool_call, tool_result, mcp_tool_call, mcp_tool_summary, error, user_question, executive_summary, final_analysis, agent_dispatched, code_execution, google_search_result, url_context_result, approval_requested, approval_ended, provider_fallback, session_started, session_resumed, stage_started, stage_completed, alert_joined, alert_resolved, alert_acknowledged, alert_updated, approval_decided, session_waiting, session_completed, session_failed, session_cancelled, session_timed_out, joined. It shows any other word as it is.';
