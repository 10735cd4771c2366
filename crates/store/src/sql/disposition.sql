-- Reads where an alert went, and whether its session was opened under this token.
SELECT CASE WHEN s.status = 'limited' OR t.metadata ->> 'reason' = 'limited' THEN 'limited'
            WHEN t.metadata ->> 'reason' = 'cooldown' THEN 'covered_by_cooldown' ELSE a.place END, a.joined_session_id,
       s.lease_token = $token AND s.lease_epoch = 1 AS is_mine,
       greatest(extract(epoch FROM s.deadline_at - clock_timestamp()), 0)::float8
FROM alerts a
LEFT JOIN alert_sessions s ON s.session_id = a.alert_id
-- The first event says why the alert joined: the session that it joined may have ended since.
LEFT JOIN timeline_events t ON t.session_id = a.alert_id AND t.session_seq = 1 AND a.place = 'joined'
WHERE a.alert_id = $alert_id
