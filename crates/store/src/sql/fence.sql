-- Reads what a fenced write is compared with: the lease of the session and the progress of one execution.
SELECT s.status, s.lease_epoch, s.lease_token, s.step, s.lease_owner IS NULL AS ownerless, e.checkpoint, e.checkpoint_id
FROM alert_sessions s LEFT JOIN agent_executions e ON e.session_id = s.session_id AND e.execution_id = $execution_id
WHERE s.session_id = $session_id
