-- Stores a request to cancel with a running session, or returns why there is nothing to cancel.
WITH requested AS (
  UPDATE alert_sessions s SET cancel_requested_at = coalesce(s.cancel_requested_at, clock_timestamp())
  WHERE s.session_id = $1 AND s.status = 'running'
  RETURNING s.session_id
)
SELECT CASE WHEN EXISTS (SELECT FROM requested) THEN 'requested'
            WHEN a.place = 'joined' THEN 'joined'
            WHEN a.place = 'undecided' THEN 'undecided'
            ELSE 'ended' END AS outcome, a.joined_session_id
FROM alerts a WHERE a.alert_id = $1
