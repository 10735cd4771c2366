-- Finds the investigation that a thread of a chat belongs to, by the receipts of the messages in it, and the route that wrote
-- them. A receipt without a channel was stored by a worker of an earlier version, and counts for the routes of the channel.
-- The messages of several investigations may be in one thread: people mean the newest.
SELECT r.session_id, n.route, (SELECT count(*) FROM alert_sessions q WHERE q.parent_id = r.session_id)
FROM notifications n
-- A message about a covered alert reports the earlier session.
LEFT JOIN alerts a ON a.alert_id = n.session_id AND n.moment = 'covered'
JOIN alert_sessions s ON s.session_id = coalesce(a.joined_session_id, n.session_id)
JOIN alert_sessions r ON r.session_id = coalesce(s.parent_id, s.session_id)
WHERE n.receipt IN ($thread, $ts) AND n.route = ANY ($routes) AND (n.receipt = $thread OR n.route = ANY ($of_channel))
ORDER BY r.created_at DESC, n.created_at, n.route LIMIT 1
