-- Gives the lease of a session to a worker when the lease has expired, or when its owner is known to be dead. `earlier` is
-- the row before this statement: it says why a claim failed, and recognises a claim that was committed although its reply
-- was lost.
WITH earlier AS (
  SELECT s.status, s.settled_at, s.lease_token, s.lease_epoch, s.lease_expires_at, s.deadline_at, s.attempts,
         s.cancel_requested_at, p.format_version, s.traceparent, s.lease_owner
  -- A session that only lists alerts has no plan.
  FROM alert_sessions s LEFT JOIN session_plans p ON p.session_id = s.session_id
  WHERE s.session_id = $session_id AND (p.session_id IS NOT NULL OR s.status <> 'running')
), free AS (
  SELECT s.session_id, s.lease_owner, s.worker_name,
         CASE WHEN split_part(s.release_reason, ' ', 1) = s.lease_epoch::text THEN split_part(s.release_reason, ' ', 2)
         END AS why,
         coalesce(s.lease_owner = ANY($predecessors::uuid[]), false) AS restarted,
         -- The lease could not be renewed while the database was unavailable, so its expiry counts as a release.
         s.lease_owner IS NOT NULL AND NOT s.lease_owner = ANY($predecessors)
           AND s.lease_expires_at > clock_timestamp() - make_interval(secs => $excuse) AS excused
  FROM alert_sessions s, earlier b
  WHERE s.session_id = $session_id AND b.format_version <= $format_version AND s.status = 'running'
    AND (s.lease_expires_at <= clock_timestamp()
         -- The owner is dead. If another one died at this checkpoint before it, the session may have killed both: the
         -- lease keeps it from killing the next one at once.
         OR s.lease_owner = ANY($predecessors) AND s.attempts <= 1)
  FOR NO KEY UPDATE OF s
), taken AS (
  UPDATE alert_sessions s
  SET lease_owner = $worker, worker_name = $worker_name, lease_token = $token, lease_epoch = s.lease_epoch + 1,
      lease_expires_at = clock_timestamp() + make_interval(secs => $lease),
      lease_period = make_interval(secs => $lease),
      attempts = s.attempts + (NOT f.excused)::integer, event_seq = s.event_seq + 1, traceparent = $traceparent
  FROM free f
  WHERE s.session_id = f.session_id
  RETURNING s.session_id, s.event_seq, s.lease_epoch, s.deadline_at, s.attempts, s.cancel_requested_at,
            f.worker_name AS previous_worker, f.lease_owner IS NULL AS released, f.excused, f.restarted, f.why
), redelivered AS (
  UPDATE alerts a SET stream_sequence = $stream_sequence::bigint
  FROM taken t WHERE a.alert_id = t.session_id AND a.stream_sequence <> $stream_sequence
), event AS (
  INSERT INTO timeline_events (session_id, created_at, session_seq, lease_epoch, event_type, status, content, metadata)
  SELECT t.session_id, clock_timestamp(), t.event_seq, t.lease_epoch, 'session_resumed', 'completed',
         CASE WHEN t.released THEN 'released by ' || t.previous_worker
              WHEN t.restarted THEN t.previous_worker || ' died and was started again in its pod'
              WHEN t.excused THEN 'lease of ' || t.previous_worker || ' expired while the database was unavailable'
              ELSE 'lease of ' || t.previous_worker || ' expired' END,
         jsonb_build_object('worker', $worker_name, 'epoch', t.lease_epoch, 'previous_worker', t.previous_worker,
                            'reason', CASE WHEN t.released THEN 'released' WHEN t.restarted THEN 'restarted'
                                          WHEN t.excused THEN 'store_unavailable' ELSE 'lease_expired' END)
           || CASE WHEN t.released AND t.why IS NOT NULL THEN jsonb_build_object('release_reason', t.why) ELSE '{}' END
  FROM taken t
)
SELECT 'taken' AS outcome, t.lease_epoch, greatest(extract(epoch FROM t.deadline_at - clock_timestamp()), 0)::float8 AS remaining,
       t.attempts, t.cancel_requested_at IS NOT NULL AS cancel_requested, b.traceparent AS previous
FROM taken t, earlier b
UNION ALL
SELECT CASE WHEN b.settled_at IS NOT NULL THEN 'settled'
            WHEN b.status <> 'running' THEN 'ended'
            WHEN b.format_version > $format_version THEN 'incompatible'
            -- It waits for a person: a lease without an owner.
            WHEN b.lease_owner IS NULL AND b.lease_expires_at > clock_timestamp() THEN 'waiting'
            -- This claim was committed before, and its reply was lost.
            WHEN b.lease_token = $token AND b.lease_expires_at > clock_timestamp() THEN 'taken'
            WHEN b.lease_expires_at > clock_timestamp() THEN 'busy'
            ELSE 'raced' END,
       b.lease_epoch,
       CASE WHEN b.lease_token <> $token AND b.lease_expires_at > clock_timestamp()
            THEN extract(epoch FROM b.lease_expires_at - clock_timestamp())
            ELSE greatest(extract(epoch FROM b.deadline_at - clock_timestamp()), 0) END::float8,
       b.attempts, b.cancel_requested_at IS NOT NULL,
       -- A claim whose reply was lost finds its own span.
       CASE WHEN b.lease_token <> $token THEN b.traceparent END
FROM earlier b
WHERE NOT EXISTS (SELECT FROM taken)
