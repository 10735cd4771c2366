-- Reads the newest completed investigations that have all of these words, and counts them. One of another chain is found
-- only if the scope is every chain, or if its alert is the same. By the index of `session_words`.
WITH subject AS MATERIALIZED (
  SELECT o.session_id, o.parent_id, coalesce(p.chain, o.chain) AS chain, coalesce(p.fingerprint, o.fingerprint) AS fingerprint
  FROM alert_sessions o LEFT JOIN alert_sessions p ON p.session_id = o.parent_id
  WHERE o.session_id = $session_id
)
SELECT f.session_id, f.finished_at, f.is_same, f.chain, coalesce(a.title, ''), a.severity, f.executive_summary,
       f.mark, v.created_at, v.person, v.channel, v.verdict, v.cause, v.action, f.total
FROM (
  SELECT s.session_id, s.finished_at, s.fingerprint IS NOT DISTINCT FROM u.fingerprint AS is_same, s.chain,
         s.executive_summary, s.mark, count(*) OVER () AS total
  FROM session_words w JOIN alert_sessions s ON s.session_id = w.session_id CROSS JOIN subject u
  WHERE w.words @@ $words::tsquery
    AND s.status = 'completed' AND s.parent_id IS NULL
    AND s.finished_at > statement_timestamp() - make_interval(days => $days::integer)
    AND s.session_id <> u.session_id AND s.session_id IS DISTINCT FROM u.parent_id
    AND ($is_of_all::boolean OR s.chain = u.chain OR s.fingerprint = u.fingerprint)
  ORDER BY s.finished_at DESC, s.session_id DESC LIMIT $limit::bigint
) f JOIN alerts a ON a.alert_id = f.session_id
LEFT JOIN LATERAL (
  -- The newest verdict of a person.
  SELECT v.created_at, v.person, v.channel, v.verdict, v.cause, v.action FROM verdicts v
  WHERE v.session_id = f.session_id ORDER BY v.created_at DESC, v.verdict_id DESC LIMIT 1
) v ON true
ORDER BY f.finished_at DESC, f.session_id DESC
