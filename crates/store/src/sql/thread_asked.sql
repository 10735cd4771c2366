-- Reads the newest answered questions about an investigation.
SELECT coalesce(a.body, ''), s.final_analysis, count(*) OVER ()
FROM alert_sessions s JOIN alerts a ON a.alert_id = s.session_id
WHERE s.parent_id = $session_id AND s.status = 'completed' AND s.final_analysis <> ''
ORDER BY s.created_at DESC, s.session_id DESC LIMIT $limit
