-- Stores a request to cancel with a running session. A session that no worker has ends at once: its lease has expired, or
-- its owner is to be ignored because it did not end the session in time. So does an alert that has no disposition yet.
-- `$1` is the name of the person who asks, if it is known. The next epoch refuses every write of an earlier owner.
-- Sent again after a lost reply, the statement finds the end that it has written.
WITH open AS (
  SELECT e.execution_id FROM agent_executions e
  WHERE e.session_id = $2 AND e.status = 'running'
  ORDER BY e.execution_id FOR NO KEY UPDATE
), held AS (
  SELECT s.session_id,
         -- A session that has only its review left is completed by the next worker, which has its analysis.
         (s.lease_expires_at > clock_timestamp() OR EXISTS (
            SELECT FROM session_plans p JOIN stages t ON t.session_id = p.session_id AND t.status = 'completed'
            WHERE p.session_id = $2 AND p.plan -> 'stages' -> t.stage_no ? 'review'))
           AND NOT $3 AS owned
  FROM alert_sessions s
  -- Executions are locked before the session, as in every statement.
  WHERE s.session_id = $2 AND s.status = 'running' AND (SELECT count(*) FROM open) >= 0
  FOR NO KEY UPDATE
), requested AS (
  UPDATE alert_sessions s SET cancel_requested_at = coalesce(s.cancel_requested_at, clock_timestamp())
  FROM held h WHERE s.session_id = h.session_id AND h.owned
), ended AS (
  UPDATE alert_sessions s
  SET cancel_requested_at = coalesce(s.cancel_requested_at, clock_timestamp()), status = 'cancelled',
      stop_reason = 'cancelled', event_seq = s.event_seq + 1, lease_owner = NULL, lease_epoch = s.lease_epoch + 1,
      lease_expires_at = clock_timestamp(), finished_at = clock_timestamp()
  FROM held h WHERE s.session_id = h.session_id AND NOT h.owned
  RETURNING s.session_id, s.event_seq, s.lease_epoch,
            -- The plan cancels the session when its alert is resolved; no person has to ask for it.
            EXISTS (SELECT FROM session_plans p WHERE p.session_id = $2
                      AND p.plan ->> 'on_resolved' = 'cancel')
              AND EXISTS (SELECT FROM alert_updates a
                          WHERE a.session_id = $2 AND a.update_no = s.updates
                            AND a.status = 'resolved') AS is_over
), ended_executions AS (
  UPDATE agent_executions e SET status = 'cancelled', finished_at = clock_timestamp()
  FROM ended d, open o WHERE e.session_id = d.session_id AND e.execution_id = o.execution_id
), ended_stages AS (
  UPDATE stages t SET status = 'cancelled', finished_at = clock_timestamp()
  FROM ended d WHERE t.session_id = d.session_id AND t.status = 'running'
), undecided AS (
  UPDATE alerts a SET place = 'ended', body = coalesce(a.body, ''), dead_detail = 'cancelled before it was investigated'
  WHERE a.alert_id = $2 AND a.place = 'undecided'
  RETURNING a.alert_id
), events AS (
  INSERT INTO timeline_events (session_id, created_at, session_seq, lease_epoch, event_type, status, content, metadata)
  SELECT session_id, clock_timestamp(), event_seq, lease_epoch, 'session_cancelled', 'failed',
         'Investigation cancelled' || CASE WHEN is_over THEN ': its alert is resolved' ELSE '' END,
         jsonb_strip_nulls(jsonb_build_object('stop_reason', 'cancelled', 'url', $4::text, 'cancelled_by', $1::text,
           'cancel_reason', CASE WHEN is_over THEN 'alert_resolved' END))
  FROM ended
  UNION ALL
  SELECT alert_id, clock_timestamp(), 1, 0, 'session_cancelled', 'failed', 'Cancelled before it was investigated',
         jsonb_strip_nulls(jsonb_build_object('stop_reason', 'cancelled', 'url', $4, 'cancelled_by', $1))
  FROM undecided
)
SELECT CASE WHEN EXISTS (SELECT FROM ended) OR EXISTS (SELECT FROM undecided) THEN 'cancelled'
            WHEN EXISTS (SELECT FROM held) THEN 'requested'
            WHEN a.place = 'joined' THEN 'joined'
            ELSE 'ended' END AS outcome, a.joined_session_id
FROM alerts a WHERE a.alert_id = $2
