-- Reads what people have decided about the requests that are not closed, with the session's event number and the number
-- of the last update of its alert: one snapshot, without a lock on the session. A session without such a request has one row.
SELECT s.event_seq, s.updates, EXISTS (
         SELECT FROM approval_freezes f
         WHERE f.ended_at IS NULL AND (f.until IS NULL OR f.until > clock_timestamp())) AS is_frozen,
       p.event_seq AS request, p.execution_id, p.call_id,
       extract(epoch FROM clock_timestamp() - p.asked_at)::float8 AS waited,
       extract(epoch FROM p.expires_at - clock_timestamp())::float8 AS left,
       -- An approval that is too old sends nothing.
       CASE WHEN p.outcome = 'approved' AND p.outcome_at <= clock_timestamp() - p.valid_for THEN 'lapsed'
            ELSE p.outcome END AS outcome,
       p.outcome_at, p.decided_by, p.comment, p.channel
FROM alert_sessions s LEFT JOIN approvals p ON p.session_id = s.session_id AND p.closed_at IS NULL
WHERE s.session_id = $session_id
ORDER BY p.event_seq
