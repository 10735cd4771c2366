-- The alert's row is locked first and has to be undecided under the lock: rival deliveries of one alert end here. A
-- question has no fingerprint: nothing is equal to null, so it finds no session to join and none that answers for it.
WITH alert AS (
  SELECT a.alert_id FROM alerts a WHERE a.alert_id = $1 AND a.place = 'undecided' FOR NO KEY UPDATE
), seen AS (
  SELECT 1 FROM alert_sessions s WHERE s.fingerprint = $2 AND s.status = 'running'
), target AS (
  -- The open session as it is once its row is ours. Seen and not here: it ended while we waited, and what it ended as
  -- is not in this statement's snapshot. Then nothing is written and the caller begins again.
  SELECT s.session_id, s.cancel_requested_at IS NOT NULL AS closing
  FROM alert, alert_sessions s
  WHERE s.fingerprint = $2 AND s.status = 'running'
  FOR NO KEY UPDATE OF s
), joined AS (
  UPDATE alert_sessions s SET event_seq = s.event_seq + 1
  FROM target t
  WHERE s.session_id = t.session_id AND NOT t.closing
  RETURNING s.session_id, s.event_seq, s.lease_epoch
), cooling AS (
  SELECT newest.session_id, newest.finished_at
  FROM alert, (
    SELECT s.session_id, s.finished_at FROM alert_sessions s
    WHERE s.fingerprint = $2 AND s.status = 'completed' AND s.final_analysis <> ''
    ORDER BY s.finished_at DESC LIMIT 1
  ) newest
  JOIN alerts o ON o.alert_id = newest.session_id
  WHERE $3::boolean AND NOT EXISTS (SELECT FROM seen)
    AND newest.finished_at > clock_timestamp() - make_interval(secs => $4)
    -- An unknown word has no place in the list, and nothing is compared with it: the alert is investigated.
    AND array_position(ARRAY['low', 'normal', 'high', 'critical'], o.severity)
        >= array_position(ARRAY['low', 'normal', 'high', 'critical'], $5::text)
), opened AS (
  INSERT INTO alert_sessions (session_id, deadline_at, lease_expires_at, lease_period, lease_token, lease_owner,
                              worker_name, fingerprint, chain, retry_of, parent_id, event_seq)
  SELECT alert_id, clock_timestamp() + make_interval(secs => $6), clock_timestamp() + make_interval(secs => $7),
         make_interval(secs => $7), $8, $9, $10, $2, $11, $12, $13::uuid, 1 + ($13 IS NOT NULL)::integer
  FROM alert WHERE $3 AND NOT EXISTS (SELECT FROM seen) AND NOT EXISTS (SELECT FROM cooling)
  -- Another alert of the fingerprint opened at the same time: no row, the caller begins again and joins it.
  ON CONFLICT DO NOTHING
  RETURNING session_id, deadline_at
), planned AS (
  INSERT INTO session_plans (session_id, format_version, plan) SELECT session_id, $14, $15 FROM opened
), decided AS (
  SELECT 'opened' AS place, session_id AS target FROM opened
  UNION ALL
  SELECT 'joined', session_id FROM joined
  UNION ALL
  SELECT 'cooling', session_id FROM cooling
  UNION ALL
  SELECT 'ended', alert_id FROM alert WHERE NOT $3 AND NOT EXISTS (SELECT FROM joined)
), placed AS (
  UPDATE alerts a
  SET place = CASE d.place WHEN 'cooling' THEN 'joined' ELSE d.place END, joined_session_id = nullif(d.target, $1),
      fingerprint = $2, alert_type = $16, title = $17, severity = $5, source = $18, body = $19
  FROM decided d WHERE a.alert_id = $1
), told AS (
  INSERT INTO timeline_events (session_id, created_at, session_seq, lease_epoch, event_type, status, content, metadata)
  SELECT session_id, clock_timestamp(), 1, 1, $20, $21, $22, $23::jsonb FROM opened
  UNION ALL
  SELECT session_id, clock_timestamp(), 2, 1, 'user_question', 'completed', $19, jsonb_build_object('parent_id', $13)
  FROM opened WHERE $13 IS NOT NULL
  UNION ALL
  SELECT session_id, clock_timestamp(), event_seq, lease_epoch,
         CASE WHEN $3 THEN 'alert_joined' ELSE 'alert_resolved' END, 'completed', $17,
         jsonb_build_object('alert_id', $1, 'severity', $5)
  FROM joined
  UNION ALL
  SELECT $1, clock_timestamp(), 1, 0, 'joined', 'completed', 'joined an open investigation',
         jsonb_build_object('joined_session_id', session_id)
  FROM joined
  UNION ALL
  -- The session that answers gets no event: its end stays its last one.
  SELECT $1, clock_timestamp(), 1, 0, 'joined', 'completed',
         format('the same was investigated %s min ago: see session %s',
                floor(extract(epoch FROM clock_timestamp() - finished_at) / 60), right(session_id::text, 8)),
         jsonb_build_object('joined_session_id', session_id, 'reason', 'cooldown', 'finished_at',
                            to_char(finished_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))
  FROM cooling
  UNION ALL
  SELECT $1, clock_timestamp(), 1, 0, 'session_completed', 'completed', 'resolved before it was investigated',
         jsonb_build_object('stop_reason', 'not_investigated', 'title', $17, 'severity', $5)
  FROM decided WHERE place = 'ended'
)
SELECT d.place, d.target, greatest(extract(epoch FROM o.deadline_at - clock_timestamp()), 0)::float8
FROM decided d LEFT JOIN opened o ON true
UNION ALL
SELECT 'closing', session_id, NULL FROM target WHERE closing AND $3
