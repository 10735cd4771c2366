-- Takes the due notifications of a route, for the time of a lease. The end of a session makes its row due, whichever
-- statement has written the end; of a session that runs, only its beginning and its requests for approvals are due, and a
-- request's end once it has one. The first message of a session goes first, so that the second one can reply to it, and a
-- request before its end.
WITH due AS (
  SELECT n.session_id, n.route, n.moment, n.in_doubt
  FROM notifications n LEFT JOIN alert_sessions s ON s.session_id = n.session_id
  WHERE n.route = $route AND n.closed_at IS NULL AND n.due_at <= clock_timestamp()
    AND (n.moment = 'started'
         OR (n.moment LIKE 'approval-%'
             OR n.moment LIKE 'decided-%'
                AND (s.finished_at IS NOT NULL
                     OR coalesce((SELECT p.outcome IS NOT NULL OR p.closed_at IS NOT NULL FROM approvals p
                                  WHERE p.session_id = n.session_id AND 'decided-' || p.event_seq = n.moment), false))
                AND NOT EXISTS (SELECT FROM notifications b
                                WHERE b.session_id = n.session_id AND b.route = n.route
                                  AND b.moment = replace(n.moment, 'decided', 'approval') AND b.closed_at IS NULL)
             OR n.moment NOT LIKE 'decided-%' AND (s.session_id IS NULL OR s.finished_at IS NOT NULL))
            AND NOT EXISTS (SELECT FROM notifications b
                            WHERE b.session_id = n.session_id AND b.route = n.route AND b.moment = 'started'
                              AND b.closed_at IS NULL))
  ORDER BY n.due_at LIMIT $limit::bigint
  FOR NO KEY UPDATE OF n SKIP LOCKED
), taken AS (
  UPDATE notifications n
  SET lease = $token, due_at = clock_timestamp() + make_interval(secs => $lease), attempts = n.attempts + 1,
      in_doubt = true
  FROM due d
  WHERE n.session_id = d.session_id AND n.route = d.route AND n.moment = d.moment
  RETURNING n.session_id, n.route, n.moment, n.attempts, d.in_doubt, n.created_at
)
SELECT t.session_id, t.moment, t.attempts, t.in_doubt,
       extract(epoch FROM clock_timestamp() - CASE WHEN t.moment = 'covered' OR t.moment LIKE 'approval-%' THEN t.created_at
                          WHEN t.moment LIKE 'decided-%' THEN coalesce(p.closed_at, p.outcome_at, s.finished_at, t.created_at)
                          ELSE coalesce(s.finished_at, t.created_at) END)::float8 AS waited,
       (SELECT b.receipt FROM notifications b
        WHERE b.session_id = t.session_id AND b.route = t.route AND b.moment = 'started'
          AND (t.moment = 'ended' OR p.session_id IS NOT NULL)) AS thread,
       a.title,
       -- An update of the alert may have made it worse; an alert that nothing has read has the priority of its queue.
       coalesce((SELECT u.severity FROM alert_updates u WHERE u.session_id = t.session_id AND u.update_no = s.updates),
                a.severity, split_part(a.subject, '.', 3)) AS severity,
       s.chain, s.status, coalesce(s.dead_letter, a.dead_reason) IS NOT NULL AS dead_letter, s.final_analysis, s.mark,
       s.review,
       coalesce(s.error, a.dead_detail) AS error, coalesce(s.created_at, a.received_at) AS began_at,
       coalesce(s.finished_at, CASE WHEN s.session_id IS NULL THEN t.created_at END) AS ended_at,
       -- The newest reference of each name: that of the alerts that joined last, or of the session's own alert.
       (SELECT jsonb_object_agg(e.key, e.value ORDER BY r.received_at)
        FROM (SELECT a.received_at, a.refs WHERE a.refs IS NOT NULL
              UNION ALL
              (SELECT j.received_at, j.refs FROM alerts j
               WHERE j.joined_session_id = t.session_id AND j.refs IS NOT NULL
               ORDER BY j.received_at DESC LIMIT 20)) r, jsonb_each(r.refs) e) AS refs,
       -- The first event of a session counts the earlier investigations of its alert.
       f.metadata -> 'past' AS past, f.metadata -> 'past_days' AS past_days,
       coalesce(s.session_id, t.session_id) AS about,
       CASE WHEN p.session_id IS NOT NULL THEN jsonb_build_object(
         'event', p.event_seq, 'tool', p.tool, 'policy', p.policy, 'arguments', p.arguments,
         'call', encode(p.call_sha256, 'hex'), 'why', p.why, 'quorum', p.quorum, 'channels', p.channels,
         'updates', s.updates, 'expires_at', p.expires_at, 'outcome', p.outcome, 'outcome_at', p.outcome_at,
         'decided_by', p.decided_by, 'channel', p.channel, 'comment', p.comment, 'closed_as', p.closed_as,
         'is_over', s.finished_at IS NOT NULL,
         'receipt', (SELECT b.receipt FROM notifications b
                     WHERE b.session_id = t.session_id AND b.route = t.route
                       AND b.moment = 'approval-' || p.event_seq AND t.moment <> b.moment)) END AS request,
       -- The thread of a question, for the route that answers it: only that one has a row about the end.
       CASE WHEN s.parent_id IS NOT NULL AND t.session_id = s.session_id
              AND a.subject LIKE 'tarsy.questions.%.slack' AND split_part(a.subject, '.', 5) = ''
              AND EXISTS (SELECT FROM notifications b
                          WHERE b.session_id = t.session_id AND b.route = t.route AND b.moment = 'ended')
            THEN a.headers ->> 'Tarsy-Thread' END AS asked_in
FROM taken t JOIN alerts a ON a.alert_id = t.session_id
-- A message about a covered alert reports the earlier session.
LEFT JOIN alert_sessions s
  ON s.session_id = CASE WHEN t.moment = 'covered' THEN a.joined_session_id ELSE t.session_id END
LEFT JOIN timeline_events f ON f.session_id = t.session_id AND f.session_seq = 1 AND f.event_type = 'session_started'
-- The request that the moment names.
LEFT JOIN approvals p
  ON p.session_id = t.session_id AND t.moment IN ('approval-' || p.event_seq, 'decided-' || p.event_seq)
