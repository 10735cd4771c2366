-- Epoch and token stay: a renewal that arrives late finds that the session ended under its own lease.
WITH open AS (
  SELECT e.execution_id FROM agent_executions e
  WHERE e.session_id = $1 AND e.status = 'running'
  ORDER BY e.execution_id FOR NO KEY UPDATE
), fence AS (
  UPDATE alert_sessions s
  SET status = $2, stop_reason = $3, final_analysis = $4, executive_summary = $5, error = $6, dead_letter = $7,
      event_seq = s.event_seq + 1, lease_owner = NULL, lease_expires_at = clock_timestamp(), finished_at = clock_timestamp()
  WHERE s.session_id = $1 AND s.lease_epoch = $8 AND s.lease_token = $9 AND s.status = 'running'
    -- Executions are locked before the session, as in every statement.
    AND (SELECT count(*) FROM open) >= 0
  RETURNING s.event_seq
), ended_executions AS (
  UPDATE agent_executions e SET status = $10, error = coalesce(e.error, $6), finished_at = $11::timestamptz
  FROM fence, open o WHERE e.session_id = $1 AND e.execution_id = o.execution_id
), ended_stages AS (
  UPDATE stages t SET status = $10, error = coalesce(t.error, $6), finished_at = $11
  FROM fence WHERE t.session_id = $1 AND t.status = 'running'
), event AS (
  INSERT INTO timeline_events (session_id, created_at, session_seq, lease_epoch, event_type, status, content, metadata)
  SELECT $1, $11, f.event_seq, $8, $12, $13, $14, $15::jsonb FROM fence f
)
SELECT event_seq FROM fence
