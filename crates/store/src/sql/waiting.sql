-- Reads how many requests for approvals are open, how many sessions wait for them without a worker, and how much of its
-- time an open request has used: the largest part. At most `$most` requests are read, those that expire first.
WITH open AS (
  SELECT p.session_id, p.asked_at, p.expires_at
  FROM approvals p
  WHERE p.outcome IS NULL AND p.closed_at IS NULL AND p.expires_at > statement_timestamp()
  ORDER BY p.expires_at LIMIT $most
)
SELECT count(*) AS requests,
       count(DISTINCT o.session_id) FILTER (
         WHERE s.lease_owner IS NULL AND s.lease_expires_at > statement_timestamp()) AS sessions,
       coalesce(max(extract(epoch FROM statement_timestamp() - o.asked_at)
                    / extract(epoch FROM o.expires_at - o.asked_at)), 0)::float8 AS oldest_ratio
-- A request is open only while its session runs.
FROM open o JOIN alert_sessions s ON s.session_id = o.session_id AND s.status = 'running' AND s.cancel_requested_at IS NULL
