-- How often the session was claimed since the last event of an execution, as iteration 0, and the last attempt of each
-- of its iterations. Before the first event its dispatch counts, for an agent of a stage the start of the stage.
SELECT 0 AS iteration, count(*)::integer AS attempts
FROM timeline_events r
WHERE r.session_id = $session_id AND r.event_type = 'session_resumed' AND r.session_seq > coalesce(
    (SELECT max(t.session_seq) FROM timeline_events t WHERE t.session_id = $session_id
     AND t.execution_id = $execution_id),
    (SELECT max(t.session_seq) FROM timeline_events t
     JOIN agent_executions e ON e.session_id = t.session_id AND e.parent_execution_id = t.execution_id
     WHERE t.session_id = $session_id AND e.execution_id = $execution_id AND t.event_type = 'agent_dispatched'
       AND t.metadata ->> 'call_id' = e.parent_call_id),
    (SELECT max(t.session_seq) FROM timeline_events t
     JOIN agent_executions e ON e.session_id = t.session_id AND e.stage_no = t.stage_no
     WHERE t.session_id = $session_id AND e.execution_id = $execution_id AND t.event_type = 'stage_started'), 0)
UNION ALL
SELECT t.iteration, max(t.attempt) FROM timeline_events t
WHERE t.session_id = $session_id AND t.execution_id = $execution_id AND t.iteration IS NOT NULL
  AND t.attempt IS NOT NULL
GROUP BY t.iteration
