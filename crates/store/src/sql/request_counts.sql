-- Counts requests, for the limits of new ones; of the open ones no more than are enough.
SELECT (SELECT count(*) FROM (
          SELECT FROM approvals p
          WHERE p.outcome IS NULL AND p.closed_at IS NULL AND p.expires_at > statement_timestamp()
          LIMIT $enough) o) AS open,
       (SELECT count(*) FROM approvals p WHERE p.session_id = s.session_id) AS of_session,
       extract(epoch FROM clock_timestamp() - s.created_at)::float8 AS age
FROM alert_sessions s WHERE s.session_id = $session_id
