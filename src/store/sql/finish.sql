-- Epoch and token stay: a renewal that arrives late finds that the session ended under its own lease.
WITH open AS (
  SELECT e.execution_id FROM agent_executions e
  WHERE e.session_id = $1 AND e.status = 'running'
  ORDER BY e.execution_id FOR NO KEY UPDATE
), fence AS (
  UPDATE alert_sessions s
  SET status = $2, stop_reason = $3, final_analysis = $4, executive_summary = $5, error = $6, dead_letter = $7,
      covered_updates = $8,
      event_seq = s.event_seq + cardinality($9::text[]), lease_owner = NULL,
      lease_expires_at = clock_timestamp(), finished_at = clock_timestamp()
  WHERE s.session_id = $1 AND s.lease_epoch = $10 AND s.lease_token = $11 AND s.status = 'running'
    -- Executions are locked before the session, as in every statement.
    AND (SELECT count(*) FROM open) >= 0
  RETURNING s.event_seq - cardinality($9::text[]) AS last_seq,
            -- What alerts reported after the last model call is not covered by the analysis.
            CASE WHEN s.status = 'completed' THEN greatest(s.updates - $8, 0) ELSE 0 END AS late
), ended_executions AS (
  UPDATE agent_executions e SET status = $12, error = coalesce(e.error, $6), finished_at = $13::timestamptz
  FROM fence, open o WHERE e.session_id = $1 AND e.execution_id = o.execution_id
), ended_stages AS (
  UPDATE stages t SET status = $12, error = coalesce(t.error, $6), finished_at = $13
  FROM fence WHERE t.session_id = $1 AND t.status = 'running'
), events AS (
  INSERT INTO timeline_events (session_id, created_at, session_seq, lease_epoch, event_type, status, content, metadata)
  SELECT $1, $13, f.last_seq + u.n, $10, u.event_type, u.status,
         u.content || CASE WHEN f.late = 0 OR u.n < cardinality($9) THEN ''
                           WHEN f.late = 1 THEN '; 1 change of the alert came too late for it'
                           ELSE format('; %s changes of the alert came too late for it', f.late) END,
         CASE WHEN f.late = 0 OR u.n < cardinality($9) THEN u.metadata
              ELSE u.metadata || jsonb_build_object('late_updates', f.late) END
  FROM fence f, unnest($9, $14::text[], $15::text[], $16::jsonb[])
       WITH ORDINALITY AS u(event_type, status, content, metadata, n)
)
-- Null if the last event has more than the caller gave.
SELECT CASE WHEN late = 0 THEN last_seq + 1 END AS first_session_seq FROM fence
