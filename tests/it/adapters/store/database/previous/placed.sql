SELECT a.place, a.joined_session_id, s.lease_token = $1 AND s.lease_epoch = 1 AS mine,
       greatest(extract(epoch FROM s.deadline_at - clock_timestamp()), 0)::float8
FROM alerts a LEFT JOIN alert_sessions s ON s.session_id = a.alert_id
WHERE a.alert_id = $2
