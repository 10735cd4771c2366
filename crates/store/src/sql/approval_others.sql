-- Reads the other requests of a session, each with the outcome of its call. A call that was approved and has no row is
-- `sent`: it runs, or its worker died and the journal does not say more yet.
SELECT p.event_seq,
       CASE WHEN p.closed_at IS NOT NULL THEN 'closed' WHEN s.status IS DISTINCT FROM 'running' THEN 'ended'
            WHEN p.outcome IS NOT NULL THEN 'decided' WHEN p.expires_at <= clock_timestamp() THEN 'expired'
            ELSE 'open' END AS state,
       p.tool, p.call_sha256 = $call_sha256 AS is_same_call, p.outcome, p.closed_as,
       CASE WHEN p.closed_as = 'approved' THEN coalesce((
         SELECT t.state FROM tool_interactions t
         WHERE t.session_id = p.session_id AND t.execution_id = p.execution_id AND t.call_id = p.call_id
         ORDER BY t.created_at DESC LIMIT 1), 'sent') END AS call_state
FROM approvals p LEFT JOIN alert_sessions s ON s.session_id = p.session_id
WHERE p.session_id = $session_id AND p.event_seq <> $event_seq
ORDER BY p.event_seq
