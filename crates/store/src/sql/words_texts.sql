-- The texts of a session in which people search. The program reads no more characters of them.
SELECT coalesce(a.title, ''), coalesce(a.alert_type, ''), coalesce(left(a.body, 150000), ''), s.executive_summary,
       left(s.final_analysis, 150000)
FROM alert_sessions s LEFT JOIN alerts a ON a.alert_id = s.session_id
WHERE s.session_id = $session_id
