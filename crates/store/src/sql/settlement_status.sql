-- Reads whether an alert or session has ended and is settled, and the dead letter that it owes.
SELECT a.place, s.status, coalesce(s.settled_at, a.settled_at) IS NOT NULL AS settled,
       coalesce(s.event_seq, (a.place IN ('joined', 'ended', 'dead'))::integer) AS last_seq,
       coalesce(s.dead_letter, a.dead_reason) AS dead_reason, coalesce(s.error, a.dead_detail, '') AS detail,
       CASE WHEN coalesce(s.dead_letter, a.dead_reason) IS NULL THEN '' ELSE coalesce(a.raw, '') END AS body, a.headers, a.subject, a.stream_sequence,
       a.deliveries, t.execution_id, t.sequence_number, t.event_type, t.created_at
FROM alerts a LEFT JOIN alert_sessions s ON s.session_id = a.alert_id
LEFT JOIN timeline_events t ON t.session_id = s.session_id AND t.session_seq = s.event_seq
WHERE a.alert_id = $alert_id
