-- Releases a lease. The token stays: a release that is sent again after a lost reply finds its own token and the next
-- epoch.
UPDATE alert_sessions s
SET lease_owner = NULL, lease_epoch = s.lease_epoch + 1, lease_expires_at = clock_timestamp(),
    attempts = greatest(s.attempts - $1, 0), release_reason = format('%s %s', s.lease_epoch + 1, $2::text)
WHERE s.session_id = $3 AND s.lease_epoch = $4 AND s.lease_token = $5 AND s.status = 'running'
RETURNING s.lease_epoch
