-- Finds orphaned alerts and sessions and marks them as swept. SKIP LOCKED: the statement that holds a row takes care of
-- it, and two sweeps at once share the rows. The order gives each row its turn when there are more than the limit. The
-- mark of a session is on the alert that opened it, so that the hot row of the session stays narrow.
WITH clock AS (
  SELECT clock_timestamp() AS now
), overdue AS (
  SELECT a.alert_id
  FROM alert_sessions s JOIN alerts a ON a.alert_id = s.session_id
  WHERE s.status = 'running' AND s.lease_expires_at <= (SELECT now FROM clock)
    -- A cancel request that found a live lease, whose owner then died.
    AND (s.deadline_at <= (SELECT now FROM clock) OR s.cancel_requested_at IS NOT NULL)
    AND (a.swept_at IS NULL OR a.swept_at <= (SELECT now FROM clock) - make_interval(secs => $interval))
  ORDER BY a.swept_at NULLS FIRST LIMIT $limit::bigint
  FOR NO KEY UPDATE SKIP LOCKED
), ownerless AS (
  -- A lease that has just expired is left to the broker, which delivers the job again.
  SELECT a.alert_id, a.swept_at
  FROM alert_sessions s JOIN alerts a ON a.alert_id = s.session_id
  WHERE s.status = 'running' AND s.lease_expires_at <= (SELECT now FROM clock) - make_interval(secs => $interval)
    AND s.deadline_at > (SELECT now FROM clock) AND s.cancel_requested_at IS NULL
    AND (a.swept_at IS NULL OR a.swept_at <= (SELECT now FROM clock) - make_interval(secs => $interval))
  ORDER BY a.swept_at NULLS FIRST LIMIT $limit
  FOR NO KEY UPDATE SKIP LOCKED
), undecided AS (
  SELECT a.alert_id, a.swept_at
  FROM alerts a
  WHERE a.settled_at IS NULL AND a.place = 'undecided'
    AND a.delivered_at <= (SELECT now FROM clock) - make_interval(secs => $min_age)
    AND (a.swept_at IS NULL OR a.swept_at <= (SELECT now FROM clock) - make_interval(secs => $interval))
  ORDER BY a.swept_at NULLS FIRST LIMIT $limit
  FOR NO KEY UPDATE SKIP LOCKED
), finished AS (
  SELECT a.alert_id, a.swept_at
  FROM alert_sessions s JOIN alerts a ON a.alert_id = s.session_id
  WHERE s.finished_at IS NOT NULL AND s.settled_at IS NULL
    AND s.finished_at <= (SELECT now FROM clock) - make_interval(secs => $min_age)
    AND (a.swept_at IS NULL OR a.swept_at <= (SELECT now FROM clock) - make_interval(secs => $interval))
  ORDER BY a.swept_at NULLS FIRST LIMIT $limit
  FOR NO KEY UPDATE SKIP LOCKED
), decided AS (
  SELECT a.alert_id, a.swept_at
  FROM alerts a
  WHERE a.settled_at IS NULL AND a.place IN ('joined', 'ended', 'dead')
    AND a.delivered_at <= (SELECT now FROM clock) - make_interval(secs => $min_age)
    AND (a.swept_at IS NULL OR a.swept_at <= (SELECT now FROM clock) - make_interval(secs => $interval))
  ORDER BY a.swept_at NULLS FIRST LIMIT $limit
  FOR NO KEY UPDATE SKIP LOCKED
), found AS (
  SELECT 'overdue' AS kind, alert_id FROM overdue
  UNION ALL
  (SELECT 'idle', alert_id
   FROM (TABLE undecided UNION ALL TABLE ownerless) i ORDER BY swept_at NULLS FIRST LIMIT $limit)
  UNION ALL
  (SELECT 'unsettled', alert_id
   FROM (TABLE decided UNION ALL TABLE finished) u ORDER BY swept_at NULLS FIRST LIMIT $limit)
)
UPDATE alerts a SET swept_at = clock_timestamp()
FROM found f WHERE a.alert_id = f.alert_id
RETURNING f.kind, a.alert_id, a.place = 'undecided', a.subject, a.headers, CASE WHEN f.kind = 'idle' THEN a.raw END,
          a.stream_sequence, CASE WHEN f.kind = 'idle' THEN (
            -- The cause that woke a session that waited for people, as long as no worker has claimed it since. An
            -- execution waits for the first of its requests that have no end.
            SELECT CASE WHEN bool_or(p.outcome IS NOT NULL) THEN 'decision'
                        WHEN bool_or(p.expires_at <= clock.now) THEN 'expiry' ELSE 'resolved' END
            FROM alert_sessions s CROSS JOIN clock
            LEFT JOIN approvals p ON p.session_id = s.session_id AND p.closed_at IS NULL AND NOT EXISTS (
              SELECT FROM approvals b
              WHERE b.session_id = p.session_id AND b.execution_id = p.execution_id AND b.event_seq < p.event_seq
                AND b.outcome IS NULL AND b.closed_at IS NULL)
            WHERE s.session_id = a.alert_id AND s.lease_owner IS NULL
              AND s.release_reason = format('%s waiting_for_approval', s.lease_epoch)
            GROUP BY s.session_id) END
