-- Reads the investigation that a session is or asks about, with its alert.
SELECT r.session_id, r.status, r.chain, r.final_analysis, r.error, coalesce(a.alert_type, ''), coalesce(a.title, ''),
       a.severity, coalesce(a.source, ''), coalesce(a.body, ''), r.finished_at
FROM alert_sessions s
JOIN alert_sessions r ON r.session_id = coalesce(s.parent_id, s.session_id)
JOIN alerts a ON a.alert_id = r.session_id
WHERE s.session_id = $session_id
