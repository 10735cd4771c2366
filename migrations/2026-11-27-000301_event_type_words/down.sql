COMMENT ON COLUMN timeline_events.event_type IS NULL;
