-- Reads judged sessions with their newest verdict, the oldest first: the alert, the providers of the plan, the analysis.
SELECT s.session_id, s.created_at, s.chain, coalesce(a.alert_type, ''), coalesce(a.title, ''), a.severity,
       coalesce(a.body, ''), p.plan, s.status, s.mark, s.executive_summary, s.final_analysis,
       v.created_at, v.person, v.channel, v.verdict, v.cause, v.action
FROM alert_sessions s
JOIN alerts a ON a.alert_id = s.session_id
LEFT JOIN session_plans p ON p.session_id = s.session_id
JOIN LATERAL (
  SELECT v.created_at, v.person, v.channel, v.verdict, v.cause, v.action FROM verdicts v
  WHERE v.session_id = s.session_id ORDER BY v.created_at DESC, v.verdict_id DESC LIMIT 1
) v ON true
WHERE s.session_id > $after::uuid
  AND ($since::float8 IS NULL OR v.created_at > statement_timestamp() - make_interval(secs => $since))
ORDER BY s.session_id LIMIT $limit::bigint
