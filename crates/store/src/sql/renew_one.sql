-- Renews one lease and waits for its row behind the statements that wait already. A statement that skips locked rows
-- may never get a row that many statements write to.
UPDATE alert_sessions s
SET lease_expires_at = greatest(s.lease_expires_at, clock_timestamp() + make_interval(secs => $1)),
    lease_period = make_interval(secs => $1)
WHERE s.session_id = $2 AND s.lease_epoch = $3 AND s.lease_token = $4 AND s.status = 'running'
RETURNING s.event_seq, s.updates, s.cancel_requested_at IS NOT NULL
