-- Decides where an alert goes. Its row is locked first and has to be undecided under the lock, so rival deliveries of
-- one alert end here. A question has no fingerprint, and nothing equals null: it joins no session and no session covers
-- it.
WITH alert AS (
  SELECT a.alert_id FROM alerts a WHERE a.alert_id = $1 AND a.place = 'undecided' FOR NO KEY UPDATE
), seen AS (
  SELECT s.session_id, s.event_seq FROM alert_sessions s WHERE s.fingerprint = $2 AND s.status = 'running'
), target AS (
  -- The open session once this statement has locked its row. A session that is in `seen` and not here ended while this
  -- statement waited, and its end is not in the snapshot. Then nothing is written and the caller begins again.
  SELECT s.session_id, s.updates, s.event_seq, s.joined_alerts, s.resolved_alerts,
         s.cancel_requested_at IS NOT NULL AS cancelling,
         -- The sender does not keep the order: a resolution that is older than the last firing is only noted.
         $3 = 'resolved' AND coalesce(s.fired_at > $4, false) AS is_outdated
  FROM alert, alert_sessions s
  WHERE s.fingerprint = $2 AND s.status = 'running' AND $3 IN ('firing', 'resolved', 'acknowledged')
  FOR NO KEY UPDATE OF s
), known AS (
  -- What the session knows: what its own alert reported, and each update since. An update that another alert wrote while
  -- this statement waited is not in the snapshot; then nothing is written and the caller begins again.
  SELECT t.session_id, t.updates, t.joined_alerts, t.resolved_alerts, t.is_outdated,
         (t.updates = 0 OR k.session_id IS NOT NULL)
           -- Whether another alert was acknowledged before is read from the timeline, which has to be that of the row.
           AND ($3 <> 'acknowledged' OR EXISTS (
             SELECT FROM seen n WHERE n.session_id = t.session_id AND n.event_seq = t.event_seq)) AS is_visible,
         -- A session of a worker that stored no members is not compared.
         coalesce(k.firing, o.members, $5) AS firing, coalesce(k.resolved, '{}') AS resolved,
         coalesce(k.severity, o.severity, 'low') AS severity, coalesce(k.status, 'firing') AS status
  FROM target t JOIN alerts o ON o.alert_id = t.session_id
  LEFT JOIN alert_updates k ON k.session_id = t.session_id AND k.update_no = t.updates
  WHERE NOT t.cancelling
), compared AS (
  -- Whether the alert may report something new. The core decides, and the caller sends the statement again with it. A
  -- hash that stands for several alerts contains their number, so it is new here when their number has changed.
  SELECT k.*, CASE WHEN $3 = 'acknowledged' THEN 'alert_acknowledged'
                   WHEN $3 = 'resolved' AND NOT k.is_outdated THEN 'alert_resolved'
                   ELSE 'alert_joined' END AS event_type,
         k.updates < $6::integer AND CASE $3 WHEN 'firing'
    THEN k.status = 'resolved' OR k.firing && $7::uuid[]
      OR array_position(ARRAY['low', 'normal', 'high', 'critical'], $8)
         > array_position(ARRAY['low', 'normal', 'high', 'critical'], k.severity)
      OR NOT k.firing @> $5
         AND (cardinality(k.firing) + cardinality(k.resolved) < $9::integer OR k.resolved && $5)
    WHEN 'resolved' THEN k.status = 'firing' AND NOT k.is_outdated
    ELSE false END AS is_new
  FROM known k
), judged AS MATERIALIZED (
  SELECT c.*, c.is_new AND c.updates IS NOT DISTINCT FROM $10::integer AND $11::jsonb IS NOT NULL AS is_update,
         CASE c.event_type WHEN 'alert_joined' THEN c.joined_alerts WHEN 'alert_resolved' THEN c.resolved_alerts
           ELSE (SELECT count(*) FROM timeline_events e
                 WHERE e.session_id = c.session_id AND e.event_type = 'alert_acknowledged') END + 1 AS count
  FROM compared c
  WHERE c.is_visible AND (NOT c.is_new OR c.updates IS NOT DISTINCT FROM $10)
), shown AS (
  -- Every joining alert is counted. The first nine have an event, then those with the counts 10, 20, 50, 100, 200, 500
  -- and so on; of acknowledged alerts only the first one. An alert without an event takes no event number. The row is
  -- locked, so no two alerts have the same count.
  SELECT j.*, CASE j.event_type WHEN 'alert_acknowledged' THEN j.count = 1
                                ELSE j.count::text SIMILAR TO '[1-9]|[125]0+' END AS has_event
  FROM judged j
), joined AS (
  UPDATE alert_sessions s
  SET updates = s.updates + j.is_update::integer, event_seq = s.event_seq + j.has_event::integer,
      joined_alerts = s.joined_alerts + (j.event_type = 'alert_joined')::integer,
      resolved_alerts = s.resolved_alerts + (j.event_type = 'alert_resolved')::integer,
      fired_at = CASE $3 WHEN 'firing' THEN greatest(s.fired_at, $4) ELSE s.fired_at END,
      -- No alert joins a session that is being cancelled, so there is no earlier request.
      cancel_requested_at = CASE WHEN j.event_type = 'alert_resolved' AND EXISTS (
          SELECT FROM session_plans p WHERE p.session_id = j.session_id AND p.plan ->> 'on_resolved' = 'cancel')
        THEN clock_timestamp() END
  FROM shown j
  WHERE s.session_id = j.session_id
  RETURNING s.session_id, s.event_seq, s.lease_epoch, s.updates, j.is_update, j.is_outdated, j.event_type, j.has_event,
            j.count
), updated_alert AS (
  INSERT INTO alert_updates (session_id, update_no, alert_id, created_at, firing, resolved, severity, status, report)
  SELECT session_id, updates, $1, clock_timestamp(), $12, $13, $14, $3, $11 FROM joined WHERE is_update
), covering AS (
  -- The newest completed session whose analysis knew all members of this alert, from the alert that opened it or
  -- from an update. A group that has grown needs an investigation of its own, and so does an alert that only claims the
  -- fingerprint.
  SELECT newest.session_id, newest.finished_at
  FROM alert, (
    SELECT s.session_id, s.finished_at, coalesce(k.severity, o.severity) AS severity
    FROM alert_sessions s JOIN alerts o ON o.alert_id = s.session_id
    LEFT JOIN alert_updates k ON k.session_id = s.session_id AND k.update_no = s.covered_updates
    -- Without a cooldown a session that ends while this statement begins would cover the alert.
    WHERE $15::boolean AND $16::float8 > 0 AND s.fingerprint = $2 AND s.status = 'completed'
      AND s.final_analysis <> ''
      AND s.finished_at > statement_timestamp() - make_interval(secs => $16)
      AND coalesce(k.firing || k.resolved, '{}') || o.members @> $5::uuid[]
      -- A session that ran without some of its tools covers no other alert.
      AND NOT EXISTS (SELECT FROM session_plans p
                      WHERE p.session_id = s.session_id AND p.plan -> 'unavailable_servers' IS NOT NULL)
      -- Nor does one that proves nothing, unless the last three all prove nothing: a weak model must not investigate for
      -- ever. The marks in the list are those that leave a proof (`Mark::covers`).
      AND (s.mark IS NULL OR s.mark IN ('no_cause', 'unknown_source', 'not_combined') OR 3 = (
        SELECT count(*) FROM (
          SELECT m.mark FROM alert_sessions m
          WHERE m.fingerprint = $2 AND m.status = 'completed'
            AND m.finished_at > statement_timestamp() - make_interval(secs => $16)
          ORDER BY m.finished_at DESC LIMIT 3) last
        WHERE last.mark NOT IN ('no_cause', 'unknown_source', 'not_combined')))
    ORDER BY s.finished_at DESC LIMIT 1
  ) newest
  WHERE NOT EXISTS (SELECT FROM seen)
    -- An unknown severity has no position in the list, the comparison is null, and the alert is investigated.
    AND array_position(ARRAY['low', 'normal', 'high', 'critical'], newest.severity)
        >= array_position(ARRAY['low', 'normal', 'high', 'critical'], $8::text)
), needed AS (
  -- The alert, if it needs a session of its own.
  SELECT alert_id FROM alert
  WHERE $15 AND NOT EXISTS (SELECT FROM seen) AND NOT EXISTS (SELECT FROM covering)
), hour AS (
  -- What the route has opened in the last hour, as far as this snapshot sees it, and the session that lists the alerts
  -- above the limit. An alert without a limit has no route here.
  SELECT count(*) FILTER (WHERE s.status <> 'limited') >= $17::integer AS is_full,
         (array_agg(s.session_id ORDER BY s.created_at DESC) FILTER (WHERE s.status = 'limited'))[1] AS list_id
  FROM alert_sessions s
  WHERE s.limited_route = $18::text AND s.created_at > statement_timestamp() - interval '1 hour'
), turn AS (
  -- The openings of a route take turns. A statement that finds another turn than its snapshot has counted without the
  -- session of a rival: nothing is written, and the caller begins again. What joins the list needs no turn, because a
  -- full route stays full.
  INSERT INTO route_turns AS r (route, turn)
  SELECT $18, 1 FROM needed, hour
  WHERE $18 IS NOT NULL AND CASE WHEN is_full THEN list_id IS NULL ELSE $19::float8 IS NOT NULL END
  ON CONFLICT (route) DO UPDATE SET turn = r.turn + 1
  WHERE r.turn = (SELECT n.turn FROM route_turns n WHERE n.route = $18)
  RETURNING r.route
), listing AS (
  -- The first alert above the limit opens the session that lists them all. It has ended: nothing is investigated.
  INSERT INTO alert_sessions (session_id, deadline_at, lease_expires_at, lease_period, lease_token, worker_name,
                              fingerprint, chain, limited_route, fired_at, status, error, finished_at)
  SELECT alert_id, clock_timestamp(), clock_timestamp(), interval '0', $20::uuid, $21::text, $2, $22::text,
         $18, CASE $3 WHEN 'firing' THEN $4 END, 'limited', $23::text, clock_timestamp()
  FROM needed, hour, turn WHERE is_full AND list_id IS NULL
  RETURNING session_id
), opened AS (
  INSERT INTO alert_sessions (session_id, deadline_at, lease_expires_at, lease_period, lease_token, lease_owner,
                              worker_name, fingerprint, chain, retry_of, parent_id, event_seq, step, traceparent,
                              fired_at, limited_route)
  SELECT alert_id, clock_timestamp() + make_interval(secs => $19), clock_timestamp() + make_interval(secs => $24),
         make_interval(secs => $24), $20, $25, $21, $2, $22, $26, $27::uuid,
         1 + ($27 IS NOT NULL)::integer + cardinality($28::text[]),
         cardinality($29::integer[]), $30, CASE $3 WHEN 'firing' THEN $4 END, $18
  FROM needed, hour
  -- Without a timeout no session may be opened: the alert can only join, be covered, be listed or end.
  WHERE $19 IS NOT NULL AND ($18 IS NULL OR NOT is_full AND EXISTS (SELECT FROM turn))
  -- Another alert of the fingerprint opened a session at the same time: there is no row, and the caller begins again.
  ON CONFLICT DO NOTHING
  RETURNING session_id, deadline_at
), planned AS (
  INSERT INTO session_plans (session_id, format_version, plan) SELECT session_id, $31, $32 FROM opened
), decided AS (
  SELECT 'opened' AS outcome, session_id AS target FROM opened
  UNION ALL
  SELECT 'joined', session_id FROM joined
  UNION ALL
  SELECT 'covered_by_cooldown', session_id FROM covering
  UNION ALL
  SELECT 'limited', session_id FROM listing
  UNION ALL
  SELECT 'limited', list_id FROM needed, hour WHERE is_full AND list_id IS NOT NULL
  UNION ALL
  SELECT 'ended', alert_id FROM alert WHERE NOT $15 AND NOT EXISTS (SELECT FROM known)
), listed AS (
  UPDATE alert_sessions s SET joined_alerts = s.joined_alerts + 1
  FROM decided d WHERE d.outcome = 'limited' AND d.target <> $1 AND s.session_id = d.target
), updated AS (
  UPDATE alerts a
  SET place = CASE WHEN d.outcome = 'limited' AND d.target = $1 THEN 'opened'
                   WHEN d.outcome IN ('covered_by_cooldown', 'limited') THEN 'joined' ELSE d.outcome END,
      joined_session_id = nullif(d.target, $1),
      fingerprint = $2, members = $5, alert_type = $33, title = $34, severity = $8, source = $35, body = $36,
      dead_detail = CASE d.outcome WHEN 'ended' THEN $37 END, refs = $38
  FROM decided d WHERE a.alert_id = $1
), events AS (
  INSERT INTO timeline_events (session_id, created_at, session_seq, lease_epoch, event_type, status, content, metadata)
  -- The event of a question has the person who asks.
  SELECT session_id, clock_timestamp(), 1, 1, $39, $40, $41, $42::jsonb || CASE WHEN $27 IS NULL THEN
           jsonb_strip_nulls(jsonb_build_object('asked_by', (
             SELECT left(a.headers ->> 'Tarsy-Asked-By', 100) FROM alerts a WHERE a.alert_id = $1)))
         ELSE '{}' END FROM opened
  UNION ALL
  SELECT session_id, clock_timestamp(), 2, 1, 'user_question', 'completed', $36,
         jsonb_strip_nulls(jsonb_build_object('parent_id', $27, 'asked_by', (
           SELECT left(a.headers ->> 'Tarsy-Asked-By', 100) FROM alerts a WHERE a.alert_id = $1)))
  FROM opened WHERE $27 IS NOT NULL
  UNION ALL
  SELECT session_id, clock_timestamp(), event_seq, lease_epoch, event_type, 'completed', $34,
         jsonb_build_object('alert_id', $1, 'severity', $8)
           || CASE WHEN count < 10 THEN '{}' ELSE jsonb_build_object('count', count) END
           || CASE WHEN is_update THEN jsonb_build_object('update', updates) ELSE '{}' END
           || CASE WHEN is_outdated THEN jsonb_build_object('outdated', true) ELSE '{}' END
  FROM joined WHERE has_event
  UNION ALL
  SELECT $1, clock_timestamp(), 1, 0, 'joined', 'completed', 'joined an open investigation' || CASE WHEN is_outdated
           THEN ', but it was resolved before that alert fired last' ELSE '' END,
         jsonb_build_object('joined_session_id', session_id, 'fingerprint', $2)
           || CASE WHEN is_update THEN jsonb_build_object('update', updates) ELSE '{}' END
           || CASE WHEN is_outdated THEN jsonb_build_object('outdated', true) ELSE '{}' END
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
  -- Nor does the list: its end is its only event, and the rows of its alerts name them.
  SELECT $1, clock_timestamp(), 1, 0, 'joined', 'completed',
         format('not investigated: %s; see session %s', $23, right(target::text, 8)),
         $43::jsonb || jsonb_build_object('joined_session_id', target, 'reason', 'limited')
  FROM decided WHERE outcome = 'limited' AND target <> $1
  UNION ALL
  SELECT session_id, clock_timestamp(), 1, 1, 'session_failed', 'failed', $23,
         $43 || jsonb_build_object('stop_reason', 'limited') FROM listing
  UNION ALL
  SELECT $1, clock_timestamp(), 1, 0, 'session_completed', 'completed', $37,
         jsonb_build_object('stop_reason', 'not_investigated', 'title', $34, 'severity', $8, 'status', $3)
  FROM decided WHERE outcome = 'ended'
), begun_stages AS (
  INSERT INTO stages (session_id, stage_no, started_at, name, success_policy)
  SELECT session_id, u.stage_no, clock_timestamp(), u.name, u.policy
  FROM opened, unnest($29, $44::text[], $45::text[]) AS u(stage_no, name, policy)
), begun_executions AS (
  INSERT INTO agent_executions (session_id, execution_id, started_at, stage_no, agent_no, agent, strategy, backend, model)
  SELECT session_id, u.execution_id, clock_timestamp(), u.stage_no, u.agent_no, u.agent, u.strategy, u.backend, u.model
  FROM opened, unnest($46::uuid[], $47::integer[], $48::integer[], $49::text[], $50::text[], $51::text[], $52::text[])
       AS u(execution_id, stage_no, agent_no, agent, strategy, backend, model)
), stage_events AS (
  INSERT INTO timeline_events (session_id, created_at, session_seq, lease_epoch, stage_no, event_type, status, content,
                               metadata)
  SELECT session_id, clock_timestamp(), 1 + ($27 IS NOT NULL)::integer + u.n, 1, ($29)[1], u.event_type, u.status,
         u.content, u.metadata
  FROM opened, unnest($28, $53::text[], $54::text[], $55::jsonb[])
       WITH ORDINALITY AS u(event_type, status, content, metadata, n)
), announced AS (
  -- The outbox of notifications; without routes no row. The end of the session makes the second one due.
  INSERT INTO notifications (session_id, route, moment)
  SELECT session_id, u.route, u.moment FROM opened, unnest($56::text[], $57::text[]) AS u(route, moment)
  UNION ALL
  SELECT session_id, u.route, u.moment
  FROM listing, unnest($56, $57) AS u(route, moment) WHERE u.moment = 'ended'
), worded AS (
  -- A worker of an earlier version prunes a session without its words.
  INSERT INTO session_words (session_id, words) SELECT session_id, array_to_tsvector($58::text[]) FROM opened
  ON CONFLICT (session_id) DO UPDATE SET words = EXCLUDED.words, has_end = false
)
SELECT d.outcome, d.target, greatest(extract(epoch FROM o.deadline_at - clock_timestamp()), 0)::float8,
       (SELECT p.traceparent FROM alert_sessions p WHERE p.session_id = coalesce($27, $26)),
       (SELECT to_jsonb(j.is_update) FROM joined j)
FROM decided d LEFT JOIN opened o ON true
UNION ALL
SELECT 'target_cancelling', session_id, NULL, NULL, NULL FROM target WHERE cancelling AND $15
UNION ALL
SELECT 'compared', session_id, NULL, NULL, CASE WHEN is_visible THEN jsonb_build_object(
         'updates', updates, 'firing', firing, 'resolved', resolved, 'severity', severity, 'status', status) END
FROM compared WHERE NOT EXISTS (SELECT FROM joined)
UNION ALL
-- The alert needs a session of its own, and this statement may open none.
SELECT 'undecided', alert_id, NULL, NULL, NULL FROM alert
WHERE $19 IS NULL AND NOT EXISTS (SELECT FROM decided) AND NOT EXISTS (SELECT FROM target)
