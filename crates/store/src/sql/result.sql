-- Reads the stored result of a tool call by the number of its event: of the session itself, or of the investigation that
-- the session is a question about. No other session can be reached.
SELECT t.tool, t.result
FROM timeline_events e
JOIN tool_interactions t ON t.session_id = e.session_id AND t.execution_id = e.execution_id
                        AND t.call_id = e.metadata ->> 'call_id'
WHERE e.session_id = CASE WHEN $of_investigation::boolean THEN (SELECT s.parent_id FROM alert_sessions s
                                                                WHERE s.session_id = $session_id::uuid)
                          ELSE $session_id END
  AND e.session_seq = $event AND e.event_type = 'tool_result'
ORDER BY t.checkpoint DESC LIMIT 1
