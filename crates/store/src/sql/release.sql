-- Releases a lease. The token stays: a release that is sent again after a lost reply finds its own token and the next
-- epoch.
UPDATE alert_sessions s
SET lease_owner = NULL, lease_epoch = s.lease_epoch + 1, lease_expires_at = clock_timestamp(),
    attempts = greatest(s.attempts - $refunded, 0), release_reason = format('%s %s', s.lease_epoch + 1, $reason::text)
WHERE s.session_id = $lease.session_id.0 AND s.lease_epoch = $epoch AND s.lease_token = $lease.token
  AND s.status = 'running'
RETURNING s.lease_epoch
