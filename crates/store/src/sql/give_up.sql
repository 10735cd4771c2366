-- Makes an undecided alert a dead letter. It gets one event, so that its watchers see an end.
WITH given_up AS (
  UPDATE alerts a SET place = 'dead', dead_reason = $1, dead_detail = $2
  WHERE a.alert_id = $3 AND a.place = 'undecided'
  RETURNING a.alert_id
), event AS (
  INSERT INTO timeline_events (session_id, created_at, session_seq, lease_epoch, event_type, status, content, metadata)
  SELECT alert_id, clock_timestamp(), 1, 0, 'session_failed', 'failed', $2, jsonb_strip_nulls(jsonb_build_object('dead_letter', $1, 'url', $4))
  FROM given_up
), announced AS (
  INSERT INTO notifications (session_id, route, moment)
  SELECT alert_id, u.route, u.moment FROM given_up, unnest($5::text[], $6::text[]) AS u(route, moment)
)
SELECT 'dead' AS place FROM given_up
UNION ALL
SELECT a.place FROM alerts a WHERE a.alert_id = $3 AND NOT EXISTS (SELECT FROM given_up)
