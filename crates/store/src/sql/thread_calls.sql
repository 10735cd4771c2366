-- Reads the tool calls of an investigation. A result is cited by the number of its event; its arguments are in the
-- event of the call.
SELECT r.session_seq, coalesce(r.metadata ->> 'tool_name', ''), coalesce(left(c.content, 2000), ''),
       coalesce(r.metadata ->> 'is_error', '') = 'true'
FROM timeline_events r
LEFT JOIN timeline_events c ON c.session_id = r.session_id AND c.event_type = 'llm_tool_call'
                           AND c.execution_id = r.execution_id AND c.metadata ->> 'call_id' = r.metadata ->> 'call_id'
WHERE r.session_id = $session_id AND r.event_type = 'tool_result'
ORDER BY r.session_seq LIMIT $limit
