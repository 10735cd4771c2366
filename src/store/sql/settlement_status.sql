-- Reads whether an alert or session has ended and is settled, and the dead letter that it owes.
SELECT a.place, s.status, coalesce(s.settled_at, a.settled_at) IS NOT NULL AS settled,
       coalesce(s.event_seq, (a.place IN ('joined', 'ended', 'dead'))::integer) AS last_seq,
       coalesce(s.dead_letter, a.dead_reason) AS dead_reason, coalesce(s.error, a.dead_detail, '') AS detail,
       coalesce(a.raw, '') AS body, a.headers, a.subject, a.stream_sequence, a.deliveries
FROM alerts a LEFT JOIN alert_sessions s ON s.session_id = a.alert_id
WHERE a.alert_id = $1
