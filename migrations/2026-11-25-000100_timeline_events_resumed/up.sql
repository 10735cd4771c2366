-- The list of sessions shows how many workers have had each: without this index, every event of every listed session is
-- read to find the few takeovers.
CREATE INDEX CONCURRENTLY IF NOT EXISTS timeline_events_resumed ON timeline_events (session_id)
WHERE event_type = 'session_resumed';
