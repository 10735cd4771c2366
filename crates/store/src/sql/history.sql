-- Reads events of a session in order, with the names of their stages and agents.
SELECT t.session_seq, t.execution_id, t.sequence_number, g.name AS stage, e.agent, t.iteration, t.attempt, t.event_type,
       t.status, t.content, t.metadata, t.created_at
FROM timeline_events t
LEFT JOIN stages g ON g.session_id = t.session_id AND g.stage_no = t.stage_no
LEFT JOIN agent_executions e ON e.session_id = t.session_id AND e.execution_id = t.execution_id
WHERE t.session_id = $session_id AND t.session_seq > $after
ORDER BY t.session_seq LIMIT $limit
