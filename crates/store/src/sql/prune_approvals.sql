-- Deletes requests that were kept longer than their sessions, with their votes, the oldest first.
WITH old AS (
  SELECT p.session_id, p.event_seq FROM approvals p
  WHERE p.asked_at < now() - make_interval(secs => $age)
    AND NOT EXISTS (SELECT FROM alert_sessions s WHERE s.session_id = p.session_id)
  ORDER BY p.asked_at LIMIT $limit::bigint
  FOR UPDATE SKIP LOCKED
), votes AS (
  DELETE FROM approval_votes v USING old o WHERE v.session_id = o.session_id AND v.event_seq = o.event_seq RETURNING 1
), gone AS (
  DELETE FROM approvals p USING old o WHERE p.session_id = o.session_id AND p.event_seq = o.event_seq RETURNING 1
)
SELECT 'approval_votes' AS relation, count(*) AS deleted FROM votes
UNION ALL SELECT 'approvals', count(*) FROM gone
