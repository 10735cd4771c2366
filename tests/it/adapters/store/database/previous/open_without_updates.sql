-- Decides where an alert goes. Its row is locked first and has to be undecided under the lock, so rival deliveries of
-- one alert end here. A question has no fingerprint, and nothing equals null: it joins no session and no session covers
-- it.
WITH alert AS (
  SELECT a.alert_id FROM alerts a WHERE a.alert_id = $1 AND a.place = 'undecided' FOR NO KEY UPDATE
), seen AS (
  SELECT 1 FROM alert_sessions s WHERE s.fingerprint = $2 AND s.status = 'running'
), target AS (
  -- The open session once this statement has locked its row. A session that is in `seen` and not here ended while this
  -- statement waited, and its end is not in the snapshot. Then nothing is written and the caller begins again.
  SELECT s.session_id, s.cancel_requested_at IS NOT NULL AS cancelling
  FROM alert, alert_sessions s
  WHERE s.fingerprint = $2 AND s.status = 'running'
  FOR NO KEY UPDATE OF s
), joined AS (
  -- Every joining alert is counted. The first nine have an event, then those with the counts 10, 20, 50, 100, 200, 500
  -- and so on; an alert without an event takes no event number. The row is locked, so no two alerts have the same
  -- count.
  UPDATE alert_sessions s
  SET joined_alerts = s.joined_alerts + $3::integer, resolved_alerts = s.resolved_alerts + (NOT $3)::integer,
      event_seq = s.event_seq
        + ((CASE WHEN $3 THEN s.joined_alerts ELSE s.resolved_alerts END + 1)::text SIMILAR TO '[1-9]|[125]0+')::integer
  FROM target t
  WHERE s.session_id = t.session_id AND NOT t.cancelling
  RETURNING s.session_id, s.event_seq, s.lease_epoch,
            CASE WHEN $3 THEN s.joined_alerts ELSE s.resolved_alerts END AS count
), covering AS (
  -- The newest completed session whose alert had all members of this one. A group that has grown needs an investigation
  -- of its own, and so does an alert that only claims the fingerprint.
  SELECT newest.session_id, newest.finished_at
  FROM alert, (
    SELECT s.session_id, s.finished_at, o.severity
    FROM alert_sessions s JOIN alerts o ON o.alert_id = s.session_id
    WHERE $3::boolean AND s.fingerprint = $2 AND s.status = 'completed' AND s.final_analysis <> ''
      AND s.finished_at > statement_timestamp() - make_interval(secs => $4)
      AND o.members @> $5::uuid[]
      -- A session that ran without some of its tools covers no other alert.
      AND NOT EXISTS (SELECT FROM session_plans p
                      WHERE p.session_id = s.session_id AND p.plan -> 'unavailable_servers' IS NOT NULL)
    ORDER BY s.finished_at DESC LIMIT 1
  ) newest
  WHERE NOT EXISTS (SELECT FROM seen)
    -- An unknown severity has no position in the list, the comparison is null, and the alert is investigated.
    AND array_position(ARRAY['low', 'normal', 'high', 'critical'], newest.severity)
        >= array_position(ARRAY['low', 'normal', 'high', 'critical'], $6::text)
), opened AS (
  INSERT INTO alert_sessions (session_id, deadline_at, lease_expires_at, lease_period, lease_token, lease_owner,
                              worker_name, fingerprint, chain, retry_of, parent_id, event_seq, traceparent)
  SELECT alert_id, clock_timestamp() + make_interval(secs => $7), clock_timestamp() + make_interval(secs => $8),
         make_interval(secs => $8), $9, $10, $11, $2, $12, $13, $14::uuid, 1 + ($14 IS NOT NULL)::integer, $15
  FROM alert
  -- Without a timeout no session may be opened: the alert can only join, be covered or end.
  WHERE $7 IS NOT NULL AND $3 AND NOT EXISTS (SELECT FROM seen) AND NOT EXISTS (SELECT FROM covering)
  -- Another alert of the fingerprint opened a session at the same time: there is no row, and the caller begins again.
  ON CONFLICT DO NOTHING
  RETURNING session_id, deadline_at
), planned AS (
  INSERT INTO session_plans (session_id, format_version, plan) SELECT session_id, $16, $17 FROM opened
), decided AS (
  SELECT 'opened' AS outcome, session_id AS target FROM opened
  UNION ALL
  SELECT 'joined', session_id FROM joined
  UNION ALL
  SELECT 'covered_by_cooldown', session_id FROM covering
  UNION ALL
  SELECT 'ended', alert_id FROM alert WHERE NOT $3 AND NOT EXISTS (SELECT FROM joined)
), updated AS (
  UPDATE alerts a
  SET place = CASE d.outcome WHEN 'covered_by_cooldown' THEN 'joined' ELSE d.outcome END, 
      joined_session_id = nullif(d.target, $1),
      fingerprint = $2, members = $5, alert_type = $18, title = $19, severity = $6, source = $20, body = $21
  FROM decided d WHERE a.alert_id = $1
), events AS (
  INSERT INTO timeline_events (session_id, created_at, session_seq, lease_epoch, event_type, status, content, metadata)
  SELECT session_id, clock_timestamp(), 1, 1, $22, $23, $24, $25::jsonb FROM opened
  UNION ALL
  SELECT session_id, clock_timestamp(), 2, 1, 'user_question', 'completed', $21, jsonb_build_object('parent_id', $14)
  FROM opened WHERE $14 IS NOT NULL
  UNION ALL
  SELECT session_id, clock_timestamp(), event_seq, lease_epoch,
         CASE WHEN $3 THEN 'alert_joined' ELSE 'alert_resolved' END, 'completed', $19,
         jsonb_build_object('alert_id', $1, 'severity', $6)
           || CASE WHEN count < 10 THEN '{}' ELSE jsonb_build_object('count', count) END
  FROM joined WHERE count::text SIMILAR TO '[1-9]|[125]0+'
  UNION ALL
  SELECT $1, clock_timestamp(), 1, 0, 'joined', 'completed', 'joined an open investigation',
         jsonb_build_object('joined_session_id', session_id, 'fingerprint', $2)
  FROM joined
  UNION ALL
  -- The covering session gets no event: its end stays its last event.
  SELECT $1, clock_timestamp(), 1, 0, 'joined', 'completed',
         format('the same was investigated %s min ago: see session %s',
                floor(extract(epoch FROM clock_timestamp() - finished_at) / 60), right(session_id::text, 8)),
         jsonb_build_object('joined_session_id', session_id, 'reason', 'cooldown', 'finished_at',
                            to_char(finished_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                            'fingerprint', $2, 'members', cardinality($5))
  FROM covering
  UNION ALL
  SELECT $1, clock_timestamp(), 1, 0, 'session_completed', 'completed', 'resolved before it was investigated',
         jsonb_build_object('stop_reason', 'not_investigated', 'title', $19, 'severity', $6)
  FROM decided WHERE outcome = 'ended'
)
SELECT d.outcome, d.target, greatest(extract(epoch FROM o.deadline_at - clock_timestamp()), 0)::float8,
       (SELECT p.traceparent FROM alert_sessions p WHERE p.session_id = coalesce($14, $13))
FROM decided d LEFT JOIN opened o ON true
UNION ALL
SELECT 'target_cancelling', session_id, NULL, NULL FROM target WHERE cancelling AND $3
