-- The newest settled sessions before a time, and which of them lack words.
SELECT s.session_id, s.settled_at, w.has_end IS NOT TRUE AS is_wordless
FROM (
  SELECT o.session_id, o.settled_at FROM alert_sessions o
  WHERE (o.settled_at, o.session_id) < (coalesce($settled_at::timestamptz, 'infinity'), $session_id)
  ORDER BY o.settled_at DESC, o.session_id DESC LIMIT $limit::bigint
) s LEFT JOIN session_words w ON w.session_id = s.session_id
ORDER BY s.settled_at DESC, s.session_id DESC
