DROP INDEX timeline_events_resumed;
