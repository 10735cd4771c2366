-- Reads freezes of all changes, the newest first: all of them, or the one that lasts now.
SELECT f.freeze_id, f.at, f.person, f.reason, f.until, f.ended_at, f.ended_by
FROM approval_freezes f
WHERE NOT f.is_end
  AND (NOT $only_active::boolean OR f.ended_at IS NULL AND (f.until IS NULL OR f.until > clock_timestamp()))
ORDER BY f.at DESC
LIMIT $limit
