-- Decides where an alert goes. Its row is locked first and has to be undecided under the lock, so rival deliveries of
-- one alert end here. A question has no fingerprint, and nothing equals null: it joins no session and no session covers
-- it.
WITH alert AS (
  SELECT a.alert_id FROM alerts a WHERE a.alert_id = $alert_id AND a.place = 'undecided' FOR NO KEY UPDATE
), seen AS (
  SELECT s.session_id, s.event_seq FROM alert_sessions s WHERE s.fingerprint = $fingerprint AND s.status = 'running'
), target AS (
  -- The open session once this statement has locked its row. A session that is in `seen` and not here ended while this
  -- statement waited, and its end is not in the snapshot. Then nothing is written and the caller begins again.
  SELECT s.session_id, s.updates, s.event_seq, s.joined_alerts, s.resolved_alerts,
         s.cancel_requested_at IS NOT NULL AS cancelling,
         s.lease_owner IS NULL AND s.lease_expires_at > clock_timestamp() AS is_parked,
         -- The sender does not keep the order: a resolution that is older than the last firing is only noted.
         $status_word = 'resolved' AND coalesce(s.fired_at > $at, false) AS is_outdated
  FROM alert, alert_sessions s
  WHERE s.fingerprint = $fingerprint AND s.status = 'running' AND $status_word IN ('firing', 'resolved', 'acknowledged')
  FOR NO KEY UPDATE OF s
), known AS (
  -- What the session knows: what its own alert reported, and each update since. An update that another alert wrote while
  -- this statement waited is not in the snapshot; then nothing is written and the caller begins again.
  SELECT t.session_id, t.updates, t.joined_alerts, t.resolved_alerts, t.is_outdated,
         (t.updates = 0 OR k.session_id IS NOT NULL)
           -- Whether another alert was acknowledged before is read from the timeline, and what a waiting session waits for
           -- from its requests: both have to be those of the row.
           AND ($status_word <> 'acknowledged' AND NOT ($status_word = 'resolved' AND t.is_parked) OR EXISTS (
             SELECT FROM seen n WHERE n.session_id = t.session_id AND n.event_seq = t.event_seq)) AS is_visible,
         -- A session of a worker that stored no members is not compared.
         coalesce(k.firing, o.members, $members) AS firing, coalesce(k.resolved, '{}') AS resolved,
         coalesce(k.severity, o.severity, 'low') AS severity, coalesce(k.status, 'firing') AS status
  FROM target t JOIN alerts o ON o.alert_id = t.session_id
  LEFT JOIN alert_updates k ON k.session_id = t.session_id AND k.update_no = t.updates
  WHERE NOT t.cancelling
), compared AS (
  -- Whether the alert may report something new. The core decides, and the caller sends the statement again with it. A
  -- hash that stands for several alerts contains their number, so it is new here when their number has changed.
  SELECT k.*, CASE WHEN $status_word = 'acknowledged' THEN 'alert_acknowledged'
                   WHEN $status_word = 'resolved' AND NOT k.is_outdated THEN 'alert_resolved'
                   ELSE 'alert_joined' END AS event_type,
         k.updates < $judgement.max_updates::integer AND CASE $status_word WHEN 'firing'
    THEN k.status = 'resolved' OR k.firing && $resolved::uuid[]
      OR array_position(ARRAY['low', 'normal', 'high', 'critical'], $severity_word)
         > array_position(ARRAY['low', 'normal', 'high', 'critical'], k.severity)
      OR NOT k.firing @> $members
         AND (cardinality(k.firing) + cardinality(k.resolved) < $judgement.max_known::integer OR k.resolved && $members)
    WHEN 'resolved' THEN k.status = 'firing' AND NOT k.is_outdated
    ELSE false END AS is_new
  FROM known k
), judged AS MATERIALIZED (
  SELECT c.*, c.is_new AND c.updates IS NOT DISTINCT FROM $judgement.compared_with::integer
           AND $judgement.report::jsonb IS NOT NULL AS is_update,
         CASE c.event_type WHEN 'alert_joined' THEN c.joined_alerts WHEN 'alert_resolved' THEN c.resolved_alerts
           ELSE (SELECT count(*) FROM timeline_events e
                 WHERE e.session_id = c.session_id AND e.event_type = 'alert_acknowledged') END + 1 AS count
  FROM compared c
  WHERE c.is_visible AND (NOT c.is_new OR c.updates IS NOT DISTINCT FROM $judgement.compared_with)
), shown AS (
  -- Every joining alert is counted. The first nine have an event, then those with the counts 10, 20, 50, 100, 200, 500
  -- and so on; of acknowledged alerts only the first one. An alert without an event takes no event number. The row is
  -- locked, so no two alerts have the same count. A resolution that is an update always has an event: a session that is
  -- about to wait for a person compares the event number.
  SELECT j.*, CASE j.event_type WHEN 'alert_acknowledged' THEN j.count = 1
                                ELSE j.count::text SIMILAR TO '[1-9]|[125]0+'
                                     OR j.event_type = 'alert_resolved' AND j.is_update END AS has_event,
         -- Read only for a resolution. The plan cancels the session, or the session waits without a worker and one of its
         -- requests ends with the alert.
         j.event_type = 'alert_resolved' AND EXISTS (
           SELECT FROM session_plans p WHERE p.session_id = j.session_id AND p.plan ->> 'on_resolved' = 'cancel') AS cancels,
         j.event_type = 'alert_resolved' AND j.is_update AND EXISTS (
           SELECT FROM approvals p WHERE p.session_id = j.session_id AND p.outcome IS NULL AND p.closed_at IS NULL
                                     AND p.on_resolved = 'withdraw') AS withdraws
  FROM judged j
), joined AS (
  UPDATE alert_sessions s
  SET updates = s.updates + j.is_update::integer, event_seq = s.event_seq + j.has_event::integer,
      joined_alerts = s.joined_alerts + (j.event_type = 'alert_joined')::integer,
      resolved_alerts = s.resolved_alerts + (j.event_type = 'alert_resolved')::integer,
      fired_at = CASE $status_word WHEN 'firing' THEN greatest(s.fired_at, $at) ELSE s.fired_at END,
      -- No alert joins a session that is being cancelled, so there is no earlier request.
      cancel_requested_at = CASE WHEN j.cancels THEN clock_timestamp() END,
      -- A session that waits is woken: its time continues, and the sweeper queues it.
      lease_expires_at = CASE WHEN (j.cancels OR j.withdraws) AND s.lease_owner IS NULL
                                AND s.lease_expires_at > clock_timestamp() THEN clock_timestamp()
                              ELSE s.lease_expires_at END,
      deadline_at = CASE WHEN (j.cancels OR j.withdraws) AND s.lease_owner IS NULL
                           AND s.lease_expires_at > clock_timestamp()
                           THEN clock_timestamp() + (s.deadline_at - s.lease_expires_at)
                         ELSE s.deadline_at END
  FROM shown j
  WHERE s.session_id = j.session_id
  RETURNING s.session_id, s.event_seq, s.lease_epoch, s.updates, j.is_update, j.is_outdated, j.event_type, j.has_event,
            j.count
), updated_alert AS (
  INSERT INTO alert_updates (session_id, update_no, alert_id, created_at, firing, resolved, severity, status, report)
  SELECT session_id, updates, $alert_id, clock_timestamp(), $judgement.firing, $judgement.resolved,
         $judgement.severity, $status_word, $judgement.report FROM joined WHERE is_update
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
    WHERE $opens::boolean AND $cooldown::float8 > 0 AND s.fingerprint = $fingerprint AND s.status = 'completed'
      AND s.final_analysis <> ''
      AND s.finished_at > statement_timestamp() - make_interval(secs => $cooldown)
      AND coalesce(k.firing || k.resolved, '{}') || o.members @> $members::uuid[]
      -- A session whose analysis a person judged wrong covers no other alert.
      AND 'wrong' IS DISTINCT FROM (SELECT v.verdict FROM verdicts v WHERE v.session_id = s.session_id
                                    ORDER BY v.created_at DESC, v.verdict_id DESC LIMIT 1)
      -- Nor does one that ran without some of its tools.
      AND NOT EXISTS (SELECT FROM session_plans p
                      WHERE p.session_id = s.session_id AND p.plan -> 'unavailable_servers' IS NOT NULL)
      -- Nor does one that proves nothing, unless the last three all prove nothing: a weak model must not investigate for
      -- ever. The marks in the list are those that leave a proof (`Mark::covers`).
      AND (s.mark IS NULL OR s.mark IN ('no_cause', 'unsupported', 'unknown_source', 'not_combined', 'weakened', 'disputed') OR 3 = (
        SELECT count(*) FROM (
          SELECT m.mark FROM alert_sessions m
          WHERE m.fingerprint = $fingerprint AND m.status = 'completed'
            AND m.finished_at > statement_timestamp() - make_interval(secs => $cooldown)
          ORDER BY m.finished_at DESC LIMIT 3) last
        WHERE last.mark NOT IN ('no_cause', 'unsupported', 'unknown_source', 'not_combined', 'weakened', 'disputed')))
    ORDER BY s.finished_at DESC LIMIT 1
  ) newest
  WHERE NOT EXISTS (SELECT FROM seen)
    -- An unknown severity has no position in the list, the comparison is null, and the alert is investigated.
    AND array_position(ARRAY['low', 'normal', 'high', 'critical'], newest.severity)
        >= array_position(ARRAY['low', 'normal', 'high', 'critical'], $severity_word::text)
), needed AS (
  -- The alert, if it needs a session of its own.
  SELECT alert_id FROM alert
  WHERE $opens AND NOT EXISTS (SELECT FROM seen) AND NOT EXISTS (SELECT FROM covering)
), hour AS (
  -- What the route has opened in the last hour, as far as this snapshot sees it, and the session that lists the alerts
  -- above the limit. An alert without a limit has no route here.
  SELECT count(*) FILTER (WHERE s.status <> 'limited') >= $limit.max_per_hour::integer AS is_full,
         (array_agg(s.session_id ORDER BY s.created_at DESC) FILTER (WHERE s.status = 'limited'))[1] AS list_id
  FROM alert_sessions s
  WHERE s.limited_route = $limit.route::text AND s.created_at > statement_timestamp() - interval '1 hour'
), turn AS (
  -- The openings of a route take turns. A statement that finds another turn than its snapshot has counted without the
  -- session of a rival: nothing is written, and the caller begins again. What joins the list needs no turn, because a
  -- full route stays full.
  INSERT INTO route_turns AS r (route, turn)
  SELECT $limit.route, 1 FROM needed, hour
  WHERE $limit.route IS NOT NULL AND CASE WHEN is_full THEN list_id IS NULL ELSE $timeout::float8 IS NOT NULL END
  ON CONFLICT (route) DO UPDATE SET turn = r.turn + 1
  WHERE r.turn = (SELECT n.turn FROM route_turns n WHERE n.route = $limit.route)
  RETURNING r.route
), listing AS (
  -- The first alert above the limit opens the session that lists them all. It has ended: nothing is investigated.
  INSERT INTO alert_sessions (session_id, deadline_at, lease_expires_at, lease_period, lease_token, worker_name,
                              fingerprint, chain, limited_route, fired_at, status, error, finished_at)
  SELECT alert_id, clock_timestamp(), clock_timestamp(), interval '0', $token::uuid, $worker_name::text, $fingerprint,
         $chain::text, $limit.route, CASE $status_word WHEN 'firing' THEN $at END, 'limited', $limit.why::text, clock_timestamp()
  FROM needed, hour, turn WHERE is_full AND list_id IS NULL
  RETURNING session_id
), opened AS (
  INSERT INTO alert_sessions (session_id, deadline_at, lease_expires_at, lease_period, lease_token, lease_owner,
                              worker_name, fingerprint, chain, retry_of, parent_id, event_seq, step, traceparent,
                              fired_at, limited_route)
  SELECT alert_id, clock_timestamp() + make_interval(secs => $timeout),
         clock_timestamp() + make_interval(secs => $lease),
         make_interval(secs => $lease), $token, $worker, $worker_name, $fingerprint, $chain, $retry_of, $parent::uuid,
         1 + ($parent IS NOT NULL)::integer + cardinality($stage_events.event_type::text[]),
         cardinality($first_stage.stages.stage_no::integer[]), $traceparent,
         CASE $status_word WHEN 'firing' THEN $at END, $limit.route
  FROM needed, hour
  -- Without a timeout no session may be opened: the alert can only join, be covered, be listed or end.
  WHERE $timeout IS NOT NULL AND ($limit.route IS NULL OR NOT is_full AND EXISTS (SELECT FROM turn))
  -- Another alert of the fingerprint opened a session at the same time: there is no row, and the caller begins again.
  ON CONFLICT DO NOTHING
  RETURNING session_id, deadline_at
), planned AS (
  INSERT INTO session_plans (session_id, format_version, plan) SELECT session_id, $format_version, $plan FROM opened
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
  SELECT 'ended', alert_id FROM alert WHERE NOT $opens AND NOT EXISTS (SELECT FROM known)
), listed AS (
  UPDATE alert_sessions s SET joined_alerts = s.joined_alerts + 1
  FROM decided d WHERE d.outcome = 'limited' AND d.target <> $alert_id AND s.session_id = d.target
), updated AS (
  UPDATE alerts a
  SET place = CASE WHEN d.outcome = 'limited' AND d.target = $alert_id THEN 'opened'
                   WHEN d.outcome IN ('covered_by_cooldown', 'limited') THEN 'joined' ELSE d.outcome END,
      joined_session_id = nullif(d.target, $alert_id),
      fingerprint = $fingerprint, members = $members, alert_type = $alert_type, title = $title,
      severity = $severity_word, source = $source, body = $body,
      dead_detail = CASE d.outcome WHEN 'ended' THEN $ended_because END, refs = $refs
  FROM decided d WHERE a.alert_id = $alert_id
), events AS (
  INSERT INTO timeline_events (session_id, created_at, session_seq, lease_epoch, event_type, status, content, metadata)
  -- The event of a question has the person who asks.
  SELECT session_id, clock_timestamp(), 1, 1, $event_type, $event_status, $event_content,
         $event_metadata::jsonb || CASE WHEN $parent IS NULL THEN
           jsonb_strip_nulls(jsonb_build_object('asked_by', (
             SELECT left(a.headers ->> 'Tarsy-Asked-By', 100) FROM alerts a WHERE a.alert_id = $alert_id)))
         ELSE '{}' END FROM opened
  UNION ALL
  SELECT session_id, clock_timestamp(), 2, 1, 'user_question', 'completed', $body,
         jsonb_strip_nulls(jsonb_build_object('parent_id', $parent, 'asked_by', (
           SELECT left(a.headers ->> 'Tarsy-Asked-By', 100) FROM alerts a WHERE a.alert_id = $alert_id)))
  FROM opened WHERE $parent IS NOT NULL
  UNION ALL
  SELECT session_id, clock_timestamp(), event_seq, lease_epoch, event_type, 'completed', $title,
         jsonb_build_object('alert_id', $alert_id, 'severity', $severity_word)
           || CASE WHEN count < 10 THEN '{}' ELSE jsonb_build_object('count', count) END
           || CASE WHEN is_update THEN jsonb_build_object('update', updates) ELSE '{}' END
           || CASE WHEN is_outdated THEN jsonb_build_object('outdated', true) ELSE '{}' END
  FROM joined WHERE has_event
  UNION ALL
  SELECT $alert_id, clock_timestamp(), 1, 0, 'joined', 'completed', 'joined an open investigation' || CASE WHEN is_outdated
           THEN ', but it was resolved before that alert fired last' ELSE '' END,
         jsonb_build_object('joined_session_id', session_id, 'fingerprint', $fingerprint)
           || CASE WHEN is_update THEN jsonb_build_object('update', updates) ELSE '{}' END
           || CASE WHEN is_outdated THEN jsonb_build_object('outdated', true) ELSE '{}' END
  FROM joined
  UNION ALL
  -- The covering session gets no event: its end stays its last event.
  SELECT $alert_id, clock_timestamp(), 1, 0, 'joined', 'completed',
         format('the same was investigated %s min ago: see session %s',
                floor(extract(epoch FROM clock_timestamp() - finished_at) / 60), right(session_id::text, 8)),
         jsonb_build_object('joined_session_id', session_id, 'reason', 'cooldown', 'finished_at',
                            to_char(finished_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                            'fingerprint', $fingerprint, 'members', cardinality($members))
  FROM covering
  UNION ALL
  -- Nor does the list: its end is its only event, and the rows of its alerts name them.
  SELECT $alert_id, clock_timestamp(), 1, 0, 'joined', 'completed',
         format('not investigated: %s; see session %s', $limit.why, right(target::text, 8)),
         $limit.metadata::jsonb || jsonb_build_object('joined_session_id', target, 'reason', 'limited')
  FROM decided WHERE outcome = 'limited' AND target <> $alert_id
  UNION ALL
  SELECT session_id, clock_timestamp(), 1, 1, 'session_failed', 'failed', $limit.why,
         $limit.metadata || jsonb_build_object('stop_reason', 'limited') FROM listing
  UNION ALL
  SELECT $alert_id, clock_timestamp(), 1, 0, 'session_completed', 'completed', $ended_because,
         jsonb_build_object('stop_reason', 'not_investigated', 'title', $title, 'severity', $severity_word, 'status',
                            $status_word)
  FROM decided WHERE outcome = 'ended'
), begun_stages AS (
  INSERT INTO stages (session_id, stage_no, started_at, name, success_policy)
  SELECT session_id, u.stage_no, clock_timestamp(), u.name, u.policy
  FROM opened, unnest($first_stage.stages.stage_no, $first_stage.stages.name::text[],
                      $first_stage.stages.policy::text[]) AS u(stage_no, name, policy)
), begun_executions AS (
  INSERT INTO agent_executions (session_id, execution_id, started_at, stage_no, agent_no, agent, strategy, backend, model)
  SELECT session_id, u.execution_id, clock_timestamp(), u.stage_no, u.agent_no, u.agent, u.strategy, u.backend, u.model
  FROM opened, unnest($first_stage.executions.execution_id::uuid[], $first_stage.executions.stage_no::integer[],
                      $first_stage.executions.agent_no::integer[], $first_stage.executions.agent::text[],
                      $first_stage.executions.strategy::text[], $first_stage.executions.backend::text[],
                      $first_stage.executions.model::text[])
       AS u(execution_id, stage_no, agent_no, agent, strategy, backend, model)
), stage_events AS (
  INSERT INTO timeline_events (session_id, created_at, session_seq, lease_epoch, stage_no, event_type, status, content,
                               metadata)
  SELECT session_id, clock_timestamp(), 1 + ($parent IS NOT NULL)::integer + u.n, 1, ($first_stage.stages.stage_no)[1],
         u.event_type, u.status, u.content, u.metadata
  FROM opened, unnest($stage_events.event_type, $stage_events.status::text[], $stage_events.content::text[],
                      $stage_events.metadata::jsonb[])
       WITH ORDINALITY AS u(event_type, status, content, metadata, n)
), announced AS (
  -- The outbox of notifications; without routes no row. The end of the session makes the second one due.
  INSERT INTO notifications (session_id, route, moment)
  SELECT session_id, u.route, u.moment
  FROM opened, unnest($notifications.routes::text[], $notifications.moments::text[]) AS u(route, moment)
  WHERE u.moment <> 'covered'
  UNION ALL
  SELECT session_id, u.route, u.moment
  FROM listing, unnest($notifications.routes, $notifications.moments) AS u(route, moment) WHERE u.moment = 'ended'
  UNION ALL
  -- A covered alert has no session, so its row is due at once.
  SELECT $alert_id, u.route, u.moment
  FROM covering, unnest($notifications.routes, $notifications.moments) AS u(route, moment) WHERE u.moment = 'covered'
), worded AS (
  -- A worker of an earlier version prunes a session without its words.
  INSERT INTO session_words (session_id, words) SELECT session_id, array_to_tsvector($words::text[]) FROM opened
  ON CONFLICT (session_id) DO UPDATE SET words = EXCLUDED.words, has_end = false
)
SELECT d.outcome, d.target, greatest(extract(epoch FROM o.deadline_at - clock_timestamp()), 0)::float8,
       (SELECT p.traceparent FROM alert_sessions p WHERE p.session_id = coalesce($parent, $retry_of)),
       (SELECT to_jsonb(j.is_update) FROM joined j)
FROM decided d LEFT JOIN opened o ON true
UNION ALL
SELECT 'target_cancelling', session_id, NULL, NULL, NULL FROM target WHERE cancelling AND $opens
UNION ALL
SELECT 'compared', session_id, NULL, NULL, CASE WHEN is_visible THEN jsonb_build_object(
         'updates', updates, 'firing', firing, 'resolved', resolved, 'severity', severity, 'status', status) END
FROM compared WHERE NOT EXISTS (SELECT FROM joined)
UNION ALL
-- The alert needs a session of its own, and this statement may open none.
SELECT 'undecided', alert_id, NULL, NULL, NULL FROM alert
WHERE $timeout IS NULL AND NOT EXISTS (SELECT FROM decided) AND NOT EXISTS (SELECT FROM target)
