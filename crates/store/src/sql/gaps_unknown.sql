-- The tools that models called in the newest sessions since a time and that they do not have.
WITH chosen AS (
  SELECT session_id FROM alert_sessions WHERE created_at >= $since ORDER BY created_at DESC LIMIT $limit),
called AS (
  SELECT e.session_id, coalesce(e.tool_name, substring(e.body->'reading'->>'problem' FROM '''(.*)''')) AS name
  FROM chosen c
  JOIN entries e ON e.session_id = c.session_id
  WHERE (e.kind = 'tool_result' AND e.body->>'not_sent' = 'unknown_tool')
     OR (e.kind = 'answer' AND e.body->'reading'->>'kind' = 'unknown_tool'))
SELECT left(name, 200), count(*), count(DISTINCT session_id) FROM called WHERE name IS NOT NULL
GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 200
