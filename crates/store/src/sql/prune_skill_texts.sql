-- Deletes texts of skills that no plan can name any more: a plan dates its texts, and a session lasts at most a week.
WITH old AS (
  SELECT t.sha256 FROM skill_texts t
  WHERE t.used_at < now() - make_interval(secs => $age) - interval '14 days'
  LIMIT $limit::bigint
  FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM skill_texts t USING old o WHERE t.sha256 = o.sha256 RETURNING 1
)
SELECT 'skill_texts' AS relation, count(*) AS deleted FROM gone
