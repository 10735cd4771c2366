-- Renews the leases of a worker. SKIP LOCKED: one stalled checkpoint must not let all leases of a worker expire. NOT IN
-- is deliberate, because it is hashed; an outer join on `renewed` would be planned as a nested loop.
WITH asked AS (
  SELECT * FROM unnest($session_id::uuid[], $epoch::integer[], $token::uuid[])
       AS a(session_id, lease_epoch, lease_token)
), free AS (
  SELECT s.session_id FROM asked a JOIN alert_sessions s USING (session_id, lease_epoch, lease_token)
  WHERE s.status = 'running'
  FOR NO KEY UPDATE OF s SKIP LOCKED
), renewed AS (
  UPDATE alert_sessions s
  SET lease_expires_at = greatest(s.lease_expires_at, clock_timestamp() + make_interval(secs => $period)),
      lease_period = make_interval(secs => $period)
  FROM free f WHERE s.session_id = f.session_id
  RETURNING s.session_id, s.event_seq, s.updates, s.cancel_requested_at
)
SELECT session_id, 'renewed' AS outcome, event_seq, updates, cancel_requested_at IS NOT NULL AS cancel_requested FROM renewed
UNION ALL
SELECT a.session_id,
       CASE WHEN s.lease_epoch IS DISTINCT FROM a.lease_epoch OR s.lease_token <> a.lease_token THEN 'lost'
            WHEN s.status <> 'running' THEN 'ended'
            ELSE 'locked' END,
       coalesce(s.event_seq, 0), 0, false
FROM asked a LEFT JOIN alert_sessions s USING (session_id)
WHERE a.session_id NOT IN (SELECT session_id FROM renewed)
