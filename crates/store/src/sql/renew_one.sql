-- Renews one lease and waits for its row behind the statements that wait already. A statement that skips locked rows
-- may never get a row that many statements write to.
UPDATE alert_sessions s
SET lease_expires_at = greatest(s.lease_expires_at, clock_timestamp() + make_interval(secs => $period)),
    lease_period = make_interval(secs => $period)
WHERE s.session_id = $lease.session_id.0 AND s.lease_epoch = $epoch AND s.lease_token = $lease.token
  AND s.status = 'running'
RETURNING s.event_seq, s.updates, s.cancel_requested_at IS NOT NULL
