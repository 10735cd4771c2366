-- Makes an undecided alert a dead letter. It gets one event, so that its watchers see an end.
WITH given_up AS (
  UPDATE alerts a SET place = 'dead', dead_reason = $reason, dead_detail = $detail
  WHERE a.alert_id = $alert_id AND a.place = 'undecided'
  RETURNING a.alert_id
), event AS (
  INSERT INTO timeline_events (session_id, created_at, session_seq, lease_epoch, event_type, status, content, metadata)
  SELECT alert_id, clock_timestamp(), 1, 0, 'session_failed', 'failed', $detail,
         jsonb_strip_nulls(jsonb_build_object('dead_letter', $reason, 'url', $link))
  FROM given_up
), announced AS (
  INSERT INTO notifications (session_id, route, moment)
  SELECT alert_id, u.route, u.moment
  FROM given_up, unnest($notifications.routes::text[], $notifications.moments::text[]) AS u(route, moment)
)
SELECT 'dead' AS place FROM given_up
UNION ALL
SELECT a.place FROM alerts a WHERE a.alert_id = $alert_id AND NOT EXISTS (SELECT FROM given_up)
