-- The summaries with a line `Not seen` of the newest sessions since a time, the newest first.
WITH chosen AS (
  SELECT session_id, status, executive_summary, created_at FROM alert_sessions WHERE created_at >= $since
  ORDER BY created_at DESC LIMIT $limit)
SELECT session_id, executive_summary FROM chosen
WHERE status = 'completed' AND executive_summary LIKE '%Not seen: %' ORDER BY created_at DESC, session_id DESC
