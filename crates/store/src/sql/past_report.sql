-- Reads the analysis of one completed investigation for another session. One of another chain is read only if the scope
-- is every chain, or if its alert is the same.
SELECT s.session_id, s.finished_at, s.fingerprint IS NOT DISTINCT FROM coalesce(p.fingerprint, o.fingerprint) AS is_same,
       s.chain, coalesce(a.title, ''), a.severity, s.executive_summary, s.mark, v.created_at, v.person, v.channel, v.verdict, v.cause, v.action,
       coalesce(s.final_analysis, '')
FROM alert_sessions o LEFT JOIN alert_sessions p ON p.session_id = o.parent_id
JOIN alert_sessions s ON s.session_id = ANY ($wanted::uuid[])
JOIN alerts a ON a.alert_id = s.session_id
LEFT JOIN LATERAL (
  -- The newest verdict of a person.
  SELECT v.created_at, v.person, v.channel, v.verdict, v.cause, v.action FROM verdicts v
  WHERE v.session_id = s.session_id ORDER BY v.created_at DESC, v.verdict_id DESC LIMIT 1
) v ON true
WHERE o.session_id = $session_id
  AND s.status = 'completed' AND s.parent_id IS NULL
  AND s.session_id <> o.session_id AND s.session_id IS DISTINCT FROM o.parent_id
  AND ($is_of_all::boolean OR s.chain = coalesce(p.chain, o.chain) OR s.fingerprint = coalesce(p.fingerprint, o.fingerprint))
LIMIT 2
