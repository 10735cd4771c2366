-- Gives up the notifications of routes that these workers do not have, once they have waited for so long, and returns
-- the time in seconds for which the oldest of all others has been due; null without one.
WITH waiting AS (
  SELECT n.session_id, n.route, n.moment,
         extract(epoch FROM clock_timestamp() - coalesce(d.at, s.finished_at, n.created_at))::float8 AS waited
  FROM notifications n LEFT JOIN alert_sessions s ON s.session_id = n.session_id
  LEFT JOIN LATERAL (
    SELECT coalesce(p.outcome_at, p.closed_at) AS at FROM approvals p
    WHERE n.moment LIKE 'decided-%' AND p.session_id = n.session_id AND 'decided-' || p.event_seq = n.moment) d ON true
  WHERE n.closed_at IS NULL
    AND (n.moment = 'started' OR n.moment LIKE 'approval-%' OR s.session_id IS NULL OR s.finished_at IS NOT NULL
         -- A message that shows a request is out of date since the request's end.
         OR n.moment LIKE 'decided-%' AND d.at IS NOT NULL)
), closed AS (
  UPDATE notifications n SET closed_at = clock_timestamp(), outcome = 'given_up', reason = 'no worker has this route'
  FROM waiting w
  WHERE n.session_id = w.session_id AND n.route = w.route AND n.moment = w.moment AND n.closed_at IS NULL
    AND w.route <> ALL ($routes::text[]) AND w.waited > $max_age
  RETURNING n.session_id
)
SELECT (SELECT count(*) FROM closed) AS closed,
       (SELECT max(w.waited) FROM waiting w WHERE w.route = ANY ($routes)) AS oldest
