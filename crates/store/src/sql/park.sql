-- Gives up the lease of a session whose executions all wait for people, until the first request on which one of them
-- waits expires. Every counted vote takes an event number: a decision after the snapshot with the number `$seen` makes
-- this write nothing. A lease without an owner that ends in the future means that the session waits. The token stays, as
-- after a release.
WITH open AS (
  SELECT e.execution_id FROM agent_executions e
  WHERE e.session_id = $lease.session_id.0 AND e.status = 'running'
  ORDER BY e.execution_id FOR NO KEY UPDATE
), first AS (
  -- An execution waits for the first of its requests; the time of a later one may have passed.
  SELECT min(p.expires_at) AS at
  FROM approvals p
  WHERE p.session_id = $lease.session_id.0 AND p.outcome IS NULL AND p.closed_at IS NULL AND NOT EXISTS (
    SELECT FROM approvals b
    WHERE b.session_id = p.session_id AND b.execution_id = p.execution_id AND b.event_seq < p.event_seq
      AND b.outcome IS NULL AND b.closed_at IS NULL)
), parked AS (
  UPDATE alert_sessions s
  SET lease_owner = NULL, lease_epoch = s.lease_epoch + 1, attempts = greatest(s.attempts - 1, 0),
      release_reason = format('%s waiting_for_approval', s.lease_epoch + 1), event_seq = s.event_seq + 1,
      -- The deadline does not count while the session waits.
      lease_expires_at = f.at, deadline_at = f.at + (s.deadline_at - clock_timestamp())
  FROM first f
  WHERE s.session_id = $lease.session_id.0 AND s.lease_epoch = $epoch AND s.lease_token = $lease.token
    AND s.status = 'running' AND s.event_seq = $seen AND s.cancel_requested_at IS NULL
    AND s.deadline_at > clock_timestamp() AND f.at > clock_timestamp()
    -- Executions are locked before the session, as in every statement.
    AND (SELECT count(*) FROM open) >= 0
  RETURNING s.event_seq, s.lease_epoch, s.lease_expires_at
), event AS (
  INSERT INTO timeline_events (session_id, created_at, session_seq, lease_epoch, event_type, status, content, metadata)
  SELECT $lease.session_id.0, clock_timestamp(), event_seq, lease_epoch, 'session_waiting', 'completed',
         'Waits for a person',
         jsonb_build_object('until', to_char(lease_expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))
  FROM parked
)
SELECT event_seq FROM parked
