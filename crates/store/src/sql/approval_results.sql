-- Reads the results that an answer cites, in order.
SELECT t.session_seq, t.metadata ->> 'tool' AS tool, left(t.content, 4000) AS content
FROM timeline_events t
WHERE t.session_id = $session_id AND t.session_seq = ANY ($events::integer[]) AND t.event_type = 'tool_result'
ORDER BY t.session_seq
