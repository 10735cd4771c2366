-- Writes one transition of a session: a stage begins with its executions, or a stage ends. All of it or nothing.
WITH fence AS (
  UPDATE alert_sessions s
  SET step = $1, event_seq = s.event_seq + cardinality($2::text[]), attempts = 1,
      lease_expires_at = greatest(s.lease_expires_at, clock_timestamp() + s.lease_period)
  WHERE s.session_id = $3 AND s.lease_epoch = $4 AND s.lease_token = $5 AND s.step = $1::integer - 1
    AND s.status = 'running'
  RETURNING s.event_seq - cardinality($2::text[]) AS last_seq
), events AS (
  INSERT INTO timeline_events (session_id, created_at, session_seq, lease_epoch, stage_no, event_type, status, content, metadata)
  SELECT $3, $6::timestamptz, f.last_seq + u.n, $4, u.stage_no, u.event_type, u.status, u.content, u.metadata
  FROM fence f, unnest($2, $7::integer[], $8::text[], $9::text[], $10::jsonb[])
       WITH ORDINALITY AS u(event_type, stage_no, status, content, metadata, n)
), begun_stages AS (
  INSERT INTO stages (session_id, stage_no, started_at, name, success_policy)
  SELECT $3, u.stage_no, $6, u.name, u.policy
  FROM fence, unnest($11::integer[], $12::text[], $13::text[]) AS u(stage_no, name, policy)
), begun_executions AS (
  INSERT INTO agent_executions (session_id, execution_id, started_at, stage_no, agent_no, agent, strategy, backend, model,
                                event_count)
  -- Its events are there already when the row of the execution was lost and the events were recovered from the stream.
  SELECT $3, u.execution_id, $6, u.stage_no, u.agent_no, u.agent, u.strategy, u.backend, u.model,
         (SELECT count(*) FROM timeline_events t WHERE t.session_id = $3 AND t.execution_id = u.execution_id)
  FROM fence, unnest($14::uuid[], $15::integer[], $16::integer[], $17::text[], $18::text[], $19::text[], $20::text[])
       AS u(execution_id, stage_no, agent_no, agent, strategy, backend, model)
), ended_stages AS (
  UPDATE stages t SET status = u.status, error = u.error, finished_at = $6
  FROM fence, unnest($21::integer[], $22::text[], $23::text[]) AS u(stage_no, status, error)
  WHERE t.session_id = $3 AND t.stage_no = u.stage_no AND t.status = 'running'
)
SELECT f.last_seq + 1 AS first_session_seq,
       (SELECT t.name FROM stages t WHERE t.session_id = $3 AND t.stage_no = ($21)[1]) AS ended_stage
FROM fence f
