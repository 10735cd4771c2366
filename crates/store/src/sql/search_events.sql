-- Finds the events of a session that contain a text: in their contents, or in the stored result of their tool call.
-- It adds up sizes, which are read without the texts, and reads texts up to a number of bytes, but at least one event.
-- Letters of ASCII are compared in lower case, others after the given replacements: by no collation of the database.
WITH results AS MATERIALIZED (
  SELECT DISTINCT ON (i.execution_id, i.call_id) i.execution_id, i.call_id, i.checkpoint, i.call_no,
         octet_length(i.result) AS bytes
  FROM tool_interactions i WHERE i.session_id = $session_id
  ORDER BY i.execution_id, i.call_id, i.checkpoint DESC
), sized AS MATERIALIZED (
  SELECT e.session_seq, r.execution_id, r.checkpoint, r.call_no,
         sum(octet_length(e.content) + coalesce(r.bytes, 0)) OVER (ORDER BY e.session_seq ROWS UNBOUNDED PRECEDING)
           - octet_length(e.content) - coalesce(r.bytes, 0) AS bytes_before
  FROM (SELECT * FROM timeline_events WHERE session_id = $session_id AND session_seq > $after
        ORDER BY session_seq LIMIT $max_events) e
  LEFT JOIN results r ON e.event_type = 'tool_result' AND r.execution_id = e.execution_id
                     AND r.call_id = e.metadata ->> 'call_id'
), found AS (
  SELECT s.session_seq, at.in_content, at.in_result, i.result
  FROM sized s
  JOIN timeline_events e ON e.session_id = $session_id AND e.session_seq = s.session_seq
  LEFT JOIN tool_interactions i ON i.session_id = $session_id AND i.execution_id = s.execution_id
                               AND i.checkpoint = s.checkpoint AND i.call_no = s.call_no
  CROSS JOIN LATERAL (
    SELECT strpos(translate(lower(e.content COLLATE "C"), $replaced, $replacements), $text) AS in_content,
           coalesce(strpos(translate(lower(i.result COLLATE "C"), $replaced, $replacements), $text), 0) AS in_result
  ) at
  WHERE s.bytes_before < $max_bytes AND (at.in_content > 0 OR at.in_result > 0)
  ORDER BY s.session_seq LIMIT $limit
), read AS (
  SELECT max(s.session_seq) AS searched_to, (SELECT max(e.session_seq) FROM timeline_events e
                                             WHERE e.session_id = $session_id) AS last
  FROM sized s WHERE s.bytes_before < $max_bytes
)
SELECT read.searched_to, read.last, t.session_seq, t.execution_id, t.sequence_number, g.name AS stage, a.agent,
       t.iteration, t.attempt, t.event_type, t.status, t.content, t.metadata, t.created_at,
       f.in_content = 0 AS in_result,
       CASE WHEN f.in_content > 0 THEN f.in_content ELSE f.in_result END AS position,
       substr(CASE WHEN f.in_content > 0 THEN t.content ELSE f.result END,
              greatest(1, CASE WHEN f.in_content > 0 THEN f.in_content ELSE f.in_result END - $before),
              $characters) AS excerpt
FROM read
LEFT JOIN found f ON true
LEFT JOIN timeline_events t ON t.session_id = $session_id AND t.session_seq = f.session_seq
LEFT JOIN stages g ON g.session_id = t.session_id AND g.stage_no = t.stage_no
LEFT JOIN agent_executions a ON a.session_id = t.session_id AND a.execution_id = t.execution_id
ORDER BY t.session_seq
