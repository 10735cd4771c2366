-- Every key begins with the session id (a UUIDv7, so the order of ids is the order of time). Statuses are TEXT. The
-- CHECKs of the tables that each step writes are dropped by later migrations: Postgres parses a list for each statement.

CREATE TABLE alerts (
  alert_id          uuid        NOT NULL,
  received_at       timestamptz NOT NULL DEFAULT now(),
  settled_at        timestamptz,
  joined_session_id uuid,
  last_delivery     uuid        NOT NULL,
  stream_sequence   bigint      NOT NULL,
  deliveries        integer     NOT NULL DEFAULT 1,
  place             text        NOT NULL DEFAULT 'undecided',
  body_sha256       bytea       NOT NULL,
  subject           text        NOT NULL,
  headers           jsonb       NOT NULL,
  dead_reason       text,
  dead_detail       text,
  fingerprint       text,
  alert_type        text,
  title             text,
  severity          text,
  source            text,
  body              text,
  raw               bytea,
  CONSTRAINT alerts_pkey PRIMARY KEY (alert_id),
  CONSTRAINT alerts_place CHECK (place IN ('undecided', 'opened', 'joined', 'ended', 'dead')),
  CONSTRAINT alerts_joined CHECK ((place = 'joined') = (joined_session_id IS NOT NULL)),
  CONSTRAINT alerts_not_self CHECK (joined_session_id <> alert_id),
  CONSTRAINT alerts_dead CHECK ((place = 'dead') = (dead_reason IS NOT NULL)),
  CONSTRAINT alerts_decoded CHECK (place IN ('undecided', 'dead') OR body IS NOT NULL),
  CONSTRAINT alerts_settled CHECK (settled_at IS NULL OR place <> 'undecided'),
  CONSTRAINT alerts_sha256 CHECK (octet_length(body_sha256) = 32)
);
CREATE INDEX alerts_joined_session ON alerts (joined_session_id) WHERE joined_session_id IS NOT NULL;
CREATE INDEX alerts_unsettled ON alerts (received_at) WHERE settled_at IS NULL;
-- Without the bound a body of a million distinct words cannot be inserted at all (a tsvector ends at 1 MiB). Queries
-- have to repeat the expression.
CREATE INDEX alerts_search ON alerts USING gin (to_tsvector('simple', left(body, 150000))) WHERE body IS NOT NULL;
COMMENT ON TABLE alerts IS 'One row per alert, inserted before anybody looks into its body, so that a body that kills the reader is counted. The primary key decides that an alert is in one place only.';
COMMENT ON COLUMN alerts.last_delivery IS 'Random per delivery: a write that is sent again after a lost reply does not count twice.';
COMMENT ON COLUMN alerts.raw IS 'The body as received; cleared when the alert is settled, and for people there is only the masked body.';

CREATE TABLE alert_sessions (
  session_id          uuid        NOT NULL,
  created_at          timestamptz NOT NULL DEFAULT now(),
  deadline_at         timestamptz NOT NULL,
  lease_expires_at    timestamptz NOT NULL,
  finished_at         timestamptz,
  settled_at          timestamptz,
  cancel_requested_at timestamptz,
  lease_period        interval    NOT NULL,
  lease_token         uuid        NOT NULL,
  lease_owner         uuid,
  lease_epoch         integer     NOT NULL DEFAULT 1,
  event_seq           integer     NOT NULL DEFAULT 1,
  step                integer     NOT NULL DEFAULT 0,
  attempts            integer     NOT NULL DEFAULT 1,
  worker_name         text        NOT NULL,
  status              text        NOT NULL DEFAULT 'running',
  stop_reason         text,
  dead_letter         text,
  fingerprint         text        NOT NULL,
  chain               text        NOT NULL,
  final_analysis      text,
  executive_summary   text,
  error               text,
  CONSTRAINT alert_sessions_pkey PRIMARY KEY (session_id),
  CONSTRAINT alert_sessions_status CHECK (status IN ('running', 'completed', 'failed', 'cancelled', 'timed_out')),
  CONSTRAINT alert_sessions_end CHECK ((status = 'running') = (finished_at IS NULL)),
  CONSTRAINT alert_sessions_settled CHECK (settled_at IS NULL OR finished_at IS NOT NULL)
) WITH (fillfactor = 60);
CREATE UNIQUE INDEX alert_sessions_open ON alert_sessions (fingerprint) WHERE status = 'running';
CREATE INDEX alert_sessions_unsettled ON alert_sessions (finished_at) WHERE finished_at IS NOT NULL AND settled_at IS NULL;
CREATE INDEX alert_sessions_search ON alert_sessions
  USING gin (to_tsvector('simple', left(final_analysis, 150000))) WHERE final_analysis IS NOT NULL;
COMMENT ON TABLE alert_sessions IS 'The hot row: every checkpoint and renewal updates it. Narrow, and no index on anything that they change, so that these updates stay within the page (HOT).';
COMMENT ON COLUMN alert_sessions.attempts IS 'Owners at the present checkpoint that did not hand the session back, the present one included.';
COMMENT ON COLUMN alert_sessions.lease_token IS 'Random per claim: a restored or failed-over database that gives an epoch a second time does not give the same right again.';
COMMENT ON COLUMN alert_sessions.dead_letter IS 'Reason of the dead letter that has to be stored before the session is settled.';

CREATE TABLE session_plans (
  session_id     uuid    NOT NULL,
  format_version integer NOT NULL,
  plan           jsonb   NOT NULL,
  CONSTRAINT session_plans_pkey PRIMARY KEY (session_id)
);
COMMENT ON TABLE session_plans IS 'What the session does, frozen when it was opened; off the hot row, which would carry it through every update.';

CREATE TABLE stages (
  session_id     uuid        NOT NULL,
  stage_no       integer     NOT NULL,
  started_at     timestamptz NOT NULL,
  finished_at    timestamptz,
  name           text        NOT NULL,
  success_policy text        NOT NULL,
  status         text        NOT NULL DEFAULT 'running',
  error          text,
  CONSTRAINT stages_pkey PRIMARY KEY (session_id, stage_no),
  CONSTRAINT stages_policy CHECK (success_policy IN ('any', 'all')),
  CONSTRAINT stages_status CHECK (status IN ('running', 'completed', 'failed', 'cancelled', 'timed_out')),
  CONSTRAINT stages_end CHECK ((status = 'running') = (finished_at IS NULL))
);

CREATE TABLE agent_executions (
  session_id    uuid        NOT NULL,
  execution_id  uuid        NOT NULL,
  started_at    timestamptz NOT NULL,
  finished_at   timestamptz,
  checkpoint_id uuid,
  stage_no      integer     NOT NULL,
  agent_no      integer     NOT NULL,
  checkpoint    integer     NOT NULL DEFAULT 0,
  iteration     integer     NOT NULL DEFAULT 0,
  event_count   integer     NOT NULL DEFAULT 0,
  entry_count   integer     NOT NULL DEFAULT 0,
  status        text        NOT NULL DEFAULT 'running',
  agent         text        NOT NULL,
  strategy      text        NOT NULL,
  backend       text        NOT NULL,
  model         text        NOT NULL,
  analysis      text,
  error         text,
  CONSTRAINT agent_executions_pkey PRIMARY KEY (session_id, execution_id),
  CONSTRAINT agent_executions_status CHECK (status IN ('running', 'completed', 'failed', 'cancelled', 'timed_out')),
  CONSTRAINT agent_executions_end CHECK ((status = 'running') = (finished_at IS NULL))
) WITH (fillfactor = 60);
COMMENT ON COLUMN agent_executions.checkpoint_id IS 'Random id of the last checkpoint: tells a checkpoint that was sent twice from a second writer.';

CREATE TABLE entries (
  session_id    uuid        NOT NULL,
  execution_id  uuid        NOT NULL,
  created_at    timestamptz NOT NULL,
  entry_no      integer     NOT NULL,
  checkpoint    integer     NOT NULL,
  iteration     integer     NOT NULL,
  kind          text        NOT NULL,
  role          text,
  content       text,
  tool_call_id  text,
  tool_name     text,
  body          jsonb       NOT NULL,
  provider_data bytea,
  CONSTRAINT entries_pkey PRIMARY KEY (session_id, execution_id, entry_no),
  CONSTRAINT entries_role CHECK (role IN ('system', 'user', 'assistant', 'tool'))
);
COMMENT ON TABLE entries IS 'The journal of each execution: what a resume replays. No CHECK on kind: a reader that does not know one refuses to resume.';
COMMENT ON COLUMN entries.provider_data IS 'Bytes that the provider wants back exactly; jsonb would reorder and reject some of them.';

CREATE VIEW messages AS
  SELECT session_id, execution_id, entry_no, created_at, iteration, kind, role, content, tool_call_id, tool_name,
         body -> 'calls' AS tool_calls
  FROM entries WHERE role IS NOT NULL;
COMMENT ON VIEW messages IS 'The conversation: the entries that go to the model.';

-- No foreign keys on the child tables: the fence of the statement that writes them is what makes a row possible, and
-- each key costs a tenth of the checkpoint rate. An alert without a session has its own events under its own id.
CREATE TABLE timeline_events (
  session_id      uuid        NOT NULL,
  execution_id    uuid,
  created_at      timestamptz NOT NULL,
  session_seq     integer     NOT NULL,
  sequence_number integer,
  lease_epoch     integer     NOT NULL,
  stage_no        integer,
  iteration       integer,
  attempt         integer,
  event_type      text        NOT NULL,
  status          text        NOT NULL,
  content         text        NOT NULL,
  metadata        jsonb,
  CONSTRAINT timeline_events_pkey PRIMARY KEY (session_id, session_seq),
  CONSTRAINT timeline_events_numbered CHECK ((execution_id IS NULL) = (sequence_number IS NULL)),
  CONSTRAINT timeline_events_type CHECK (event_type IN (
    'llm_thinking', 'llm_response', 'llm_tool_call', 'tool_result', 'mcp_tool_call', 'mcp_tool_summary', 'error',
    'user_question', 'executive_summary', 'final_analysis', 'provider_fallback', 'session_started', 'session_resumed',
    'stage_started', 'stage_completed', 'alert_joined', 'alert_resolved', 'session_completed', 'session_failed',
    'session_cancelled', 'session_timed_out', 'joined'))
);
COMMENT ON TABLE timeline_events IS 'What the world sees, and the outbox it is published from. No full-text index: it would cost a third of the checkpoint rate.';

CREATE TABLE llm_interactions (
  session_id      uuid        NOT NULL,
  execution_id    uuid        NOT NULL,
  created_at      timestamptz NOT NULL,
  checkpoint      integer     NOT NULL,
  call_no         integer     NOT NULL,
  iteration       integer     NOT NULL,
  entries_upto    integer     NOT NULL,
  duration_ms     bigint      NOT NULL,
  input_tokens    bigint,
  cached_tokens   bigint,
  output_tokens   bigint,
  thinking_tokens bigint,
  purpose         text        NOT NULL,
  provider        text        NOT NULL,
  backend         text        NOT NULL,
  model           text        NOT NULL,
  error           text,
  response        jsonb,
  CONSTRAINT llm_interactions_pkey PRIMARY KEY (session_id, execution_id, checkpoint, call_no)
);
COMMENT ON TABLE llm_interactions IS 'For people, never read back. The request is the journal up to entries_upto, so the conversation is stored once.';

CREATE TABLE tool_interactions (
  session_id   uuid        NOT NULL,
  execution_id uuid        NOT NULL,
  created_at   timestamptz NOT NULL,
  checkpoint   integer     NOT NULL,
  call_no      integer     NOT NULL,
  iteration    integer     NOT NULL,
  duration_ms  bigint      NOT NULL,
  read_only    boolean     NOT NULL,
  state        text        NOT NULL,
  call_id      text        NOT NULL,
  tool         text        NOT NULL,
  arguments    text        NOT NULL,
  result       text,
  error        text,
  CONSTRAINT tool_interactions_pkey PRIMARY KEY (session_id, execution_id, checkpoint, call_no),
  CONSTRAINT tool_interactions_state CHECK (state IN ('done', 'failed', 'lost'))
);
COMMENT ON TABLE tool_interactions IS 'For people, never read back: the facts that a resume needs (started, lost) are entries.';
