-- Deletes alerts that opened no session, each with its events, the oldest first. Locked rows are left for the next
-- time.
WITH old AS (
  SELECT a.alert_id FROM alerts a
  WHERE a.settled_at < now() - make_interval(secs => $age) AND a.place <> 'opened'
  -- A notification that waits keeps its session, until it is given up.
    AND NOT EXISTS (SELECT FROM notifications n WHERE n.session_id = a.alert_id AND n.closed_at IS NULL
                      AND n.created_at > now() - interval '2 days')
  ORDER BY a.settled_at LIMIT $limit::bigint
  FOR UPDATE SKIP LOCKED
), events AS (
  DELETE FROM timeline_events t USING old o WHERE t.session_id = o.alert_id RETURNING 1
), messages AS (
  DELETE FROM notifications t USING old o WHERE t.session_id = o.alert_id RETURNING 1
), gone AS (
  DELETE FROM alerts a USING old o WHERE a.alert_id = o.alert_id RETURNING 1
)
SELECT 'timeline_events' AS relation, count(*) AS deleted FROM events
UNION ALL SELECT 'notifications', count(*) FROM messages
UNION ALL SELECT 'alerts', count(*) FROM gone
