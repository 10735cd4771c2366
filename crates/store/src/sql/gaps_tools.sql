-- The calls of each tool of a server in the newest sessions since a time, by what came of them; only tools with a gap.
WITH chosen AS (
  SELECT session_id FROM alert_sessions WHERE created_at >= $since ORDER BY created_at DESC LIMIT $limit),
calls AS (
  SELECT r.tool_name AS tool, r.body->>'not_sent' AS not_sent, (r.body->>'is_error')::boolean AS is_error,
         -- The size is read without the text.
         pg_column_size(r.content) < 100 AND btrim(r.content, E' \t\r\n') IN ('', $nothing, $nothing_observed) AS is_empty,
         f.entry_no IS NOT NULL AS is_timeout
  FROM chosen c
  JOIN entries r ON r.session_id = c.session_id AND r.kind IN ('tool_result', 'observation')
  -- The failure of a call stands behind its result.
  LEFT JOIN entries f ON f.session_id = r.session_id AND f.execution_id = r.execution_id
    AND f.entry_no = r.entry_no + 1 AND f.kind = 'failed' AND f.body->>'timeout' = 'true'
  WHERE r.tool_name NOT LIKE 'tarsy.%' AND r.body->>'not_sent' IS DISTINCT FROM 'unknown_tool'),
counted AS (
  SELECT tool, count(*) AS calls,
         count(*) FILTER (WHERE not_sent IS NULL AND NOT is_error AND is_empty) AS empty,
         count(*) FILTER (WHERE not_sent IS NULL AND is_timeout) AS timed_out,
         count(*) FILTER (WHERE not_sent = 'unfit_arguments') AS refused_arguments,
         count(*) FILTER (WHERE not_sent = 'unavailable') AS unavailable,
         count(*) FILTER (WHERE not_sent IS NULL AND is_error AND NOT is_timeout) AS failed
  FROM calls GROUP BY tool)
SELECT tool, calls, empty, timed_out, refused_arguments, unavailable, failed FROM counted
WHERE empty + timed_out + refused_arguments + unavailable + failed > 0
ORDER BY empty + timed_out + refused_arguments + unavailable + failed DESC, tool
LIMIT 200
