-- Marks what has ended as settled and deletes the raw body. Headers and subject are replaced by their masked forms.
WITH session AS (
  UPDATE alert_sessions s SET settled_at = coalesce(s.settled_at, clock_timestamp())
  WHERE s.session_id = $session_id AND s.status <> 'running'
  RETURNING s.session_id
), alert AS (
  UPDATE alerts a SET settled_at = coalesce(a.settled_at, clock_timestamp()), raw = NULL,
    headers = $headers, subject = $subject
  WHERE a.alert_id = $session_id
    AND (a.place IN ('joined', 'ended', 'dead') OR a.place = 'opened' AND EXISTS (SELECT FROM session))
  RETURNING a.alert_id
)
SELECT (SELECT count(*) FROM session) + (SELECT count(*) FROM alert) > 0
