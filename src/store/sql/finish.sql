-- Epoch and token stay: a renewal that arrives late finds that the session ended under its own lease.
WITH open AS (
  SELECT e.execution_id FROM agent_executions e
  WHERE e.session_id = $1 AND e.status = 'running'
  ORDER BY e.execution_id FOR NO KEY UPDATE
), fence AS (
  UPDATE alert_sessions s
  SET status = $2, stop_reason = $3, final_analysis = $4, executive_summary = $5, error = $6, dead_letter = $7,
      event_seq = s.event_seq + cardinality($8::text[]), lease_owner = NULL,
      lease_expires_at = clock_timestamp(), finished_at = clock_timestamp()
  WHERE s.session_id = $1 AND s.lease_epoch = $9 AND s.lease_token = $10 AND s.status = 'running'
    -- Executions are locked before the session, as in every statement.
    AND (SELECT count(*) FROM open) >= 0
  RETURNING s.event_seq - cardinality($8::text[]) AS last_seq
), ended_executions AS (
  UPDATE agent_executions e SET status = $11, error = coalesce(e.error, $6), finished_at = $12::timestamptz
  FROM fence, open o WHERE e.session_id = $1 AND e.execution_id = o.execution_id
), ended_stages AS (
  UPDATE stages t SET status = $11, error = coalesce(t.error, $6), finished_at = $12
  FROM fence WHERE t.session_id = $1 AND t.status = 'running'
), events AS (
  INSERT INTO timeline_events (session_id, created_at, session_seq, lease_epoch, event_type, status, content, metadata)
  SELECT $1, $12, f.last_seq + u.n, $9, u.event_type, u.status, u.content, u.metadata
  FROM fence f, unnest($8, $13::text[], $14::text[], $15::jsonb[])
       WITH ORDINALITY AS u(event_type, status, content, metadata, n)
)
SELECT last_seq + 1 AS first_session_seq FROM fence
