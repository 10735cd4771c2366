-- Reads the call of a request, and the alert of its session.
SELECT p.execution_id, e.agent, p.call_id, p.arguments, p.why, p.origins,
       extract(epoch FROM p.valid_for)::float8 AS valid_for_secs, p.on_resolved, p.other_person, p.channels, p.evidence,
       a.title, a.severity, a.source, a.body,
       EXISTS (SELECT FROM alert_updates u WHERE u.session_id = p.session_id AND u.update_no = s.updates
                                             AND u.status = 'resolved') AS is_resolved,
       a.headers ->> 'Tarsy-Asked-By' AS asked_by, coalesce(s.event_seq, 0) AS last_seq,
       coalesce(s.status = 'running' AND s.lease_owner IS NULL AND s.lease_expires_at > clock_timestamp(), false)
         AS is_waiting
FROM approvals p
LEFT JOIN alert_sessions s ON s.session_id = p.session_id
LEFT JOIN alerts a ON a.alert_id = p.session_id
LEFT JOIN agent_executions e ON e.session_id = p.session_id AND e.execution_id = p.execution_id
WHERE p.session_id = $session_id AND p.event_seq = $event_seq
