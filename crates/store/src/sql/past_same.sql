-- Reads the newest completed investigations of an alert's fingerprint, whatever their chain, and counts them. Without a
-- fingerprint it is that of the session, or of the investigation that the session is a question about. By
-- `alert_sessions_completed`.
SELECT f.session_id, f.finished_at, true AS is_same, f.chain, coalesce(a.title, ''), a.severity, f.executive_summary,
       f.mark, v.created_at, v.person, v.channel, v.verdict, v.cause, v.action, f.total
FROM (
  SELECT s.session_id, s.finished_at, s.chain, s.executive_summary, s.mark, count(*) OVER () AS total
  FROM alert_sessions s
  WHERE s.fingerprint = coalesce($fingerprint::text, (
      SELECT coalesce(p.fingerprint, o.fingerprint)
      FROM alert_sessions o LEFT JOIN alert_sessions p ON p.session_id = o.parent_id
      WHERE o.session_id = $session_id::uuid))
    AND s.status = 'completed'
    AND s.finished_at > coalesce($until::timestamptz, statement_timestamp()) - make_interval(days => $days::integer)
    AND s.finished_at <= coalesce($until, statement_timestamp())
    AND s.session_id <> $session_id
    AND s.session_id IS DISTINCT FROM (SELECT o.parent_id FROM alert_sessions o WHERE o.session_id = $session_id)
  ORDER BY s.finished_at DESC, s.session_id DESC LIMIT $limit::bigint
) f JOIN alerts a ON a.alert_id = f.session_id
LEFT JOIN LATERAL (
  -- The newest verdict of a person.
  SELECT v.created_at, v.person, v.channel, v.verdict, v.cause, v.action FROM verdicts v
  WHERE v.session_id = f.session_id ORDER BY v.created_at DESC, v.verdict_id DESC LIMIT 1
) v ON true
ORDER BY f.finished_at DESC, f.session_id DESC
