-- Lists requests for people: open ones the oldest first, all the newest first.
SELECT p.session_id, p.event_seq,
       CASE WHEN p.closed_at IS NOT NULL THEN 'closed' WHEN s.status IS DISTINCT FROM 'running' THEN 'ended'
            WHEN p.outcome IS NOT NULL THEN 'decided' WHEN p.expires_at <= clock_timestamp() THEN 'expired'
            ELSE 'open' END AS state,
       p.tool, p.policy, p.call_sha256, p.quorum, p.votes, p.decided_by, p.outcome, p.outcome_at, p.comment, p.asked_at,
       p.expires_at, p.closed_at, p.closed_as, a.title, a.severity, coalesce(s.chain, '') AS chain,
       coalesce(s.updates, 0) AS updates
-- A request may be kept longer than its session.
FROM approvals p LEFT JOIN alert_sessions s ON s.session_id = p.session_id LEFT JOIN alerts a ON a.alert_id = p.session_id
WHERE ($session_id::uuid IS NULL OR p.session_id = $session_id) AND ($event_seq::integer IS NULL OR p.event_seq = $event_seq)
  AND ($since.at::timestamptz IS NULL OR p.asked_at >= $since.at)
  AND ($since.ago::float8 IS NULL OR p.asked_at >= now() - make_interval(secs => $since.ago))
  AND (NOT $only_open::boolean OR p.outcome IS NULL AND p.closed_at IS NULL AND p.expires_at > clock_timestamp()
                                  AND s.status = 'running')
ORDER BY CASE WHEN $only_open THEN p.asked_at END, p.asked_at DESC, p.session_id, p.event_seq DESC
LIMIT $limit
