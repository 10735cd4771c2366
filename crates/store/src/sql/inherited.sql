-- The running sessions of workers that are dead, with the contexts of their producers. Where another owner died at the same
-- checkpoint before, the lease has to expire: see `claim.sql`, which compares again.
SELECT s.session_id, a.headers ->> 'traceparent'
FROM alert_sessions s JOIN alerts a ON a.alert_id = s.session_id
WHERE s.status = 'running' AND s.lease_owner = ANY($workers::uuid[]) AND s.attempts <= 1
ORDER BY s.session_id
