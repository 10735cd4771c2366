-- The alert's row is locked first and has to be undecided under the lock: rival deliveries of one alert end here.
WITH alert AS (
  SELECT a.alert_id FROM alerts a WHERE a.alert_id = $1 AND a.place = 'undecided' FOR NO KEY UPDATE
), joined AS (
  UPDATE alert_sessions s SET event_seq = s.event_seq + 1
  FROM alert
  WHERE s.fingerprint = $2 AND s.status = 'running' AND s.cancel_requested_at IS NULL
  RETURNING s.session_id, s.event_seq, s.lease_epoch
), opened AS (
  INSERT INTO alert_sessions (session_id, deadline_at, lease_expires_at, lease_period, lease_token, lease_owner,
                              worker_name, fingerprint, chain)
  SELECT alert_id, clock_timestamp() + make_interval(secs => $3), clock_timestamp() + make_interval(secs => $4),
         make_interval(secs => $4), $5, $6, $7, $2, $8
  FROM alert WHERE $9::boolean AND NOT EXISTS (SELECT FROM joined)
  -- Another alert of the fingerprint opened at the same time: no row, the caller begins again and joins it.
  ON CONFLICT DO NOTHING
  RETURNING session_id, deadline_at
), planned AS (
  INSERT INTO session_plans (session_id, format_version, plan) SELECT session_id, $10, $11 FROM opened
), decided AS (
  SELECT 'opened' AS place, session_id AS target FROM opened
  UNION ALL
  SELECT 'joined', session_id FROM joined
  UNION ALL
  SELECT 'ended', alert_id FROM alert WHERE NOT $9 AND NOT EXISTS (SELECT FROM joined)
), placed AS (
  UPDATE alerts a
  SET place = d.place, joined_session_id = nullif(d.target, $1), fingerprint = $2, alert_type = $12, title = $13,
      severity = $14, source = $15, body = $16
  FROM decided d WHERE a.alert_id = $1
), told AS (
  INSERT INTO timeline_events (session_id, created_at, session_seq, lease_epoch, event_type, status, content, metadata)
  SELECT session_id, clock_timestamp(), 1, 1, $17, $18, $19, $20::jsonb FROM opened
  UNION ALL
  SELECT session_id, clock_timestamp(), event_seq, lease_epoch,
         CASE WHEN $9 THEN 'alert_joined' ELSE 'alert_resolved' END, 'completed', $13,
         jsonb_build_object('alert_id', $1, 'severity', $14)
  FROM joined
  UNION ALL
  SELECT $1, clock_timestamp(), 1, 0, 'joined', 'completed', 'joined an open investigation',
         jsonb_build_object('joined_session_id', session_id)
  FROM joined
  UNION ALL
  SELECT $1, clock_timestamp(), 1, 0, 'session_completed', 'completed', 'resolved before it was investigated',
         jsonb_build_object('stop_reason', 'not_investigated')
  FROM decided WHERE place = 'ended'
)
SELECT d.place, d.target, greatest(extract(epoch FROM o.deadline_at - clock_timestamp()), 0)::float8
FROM decided d LEFT JOIN opened o ON true
