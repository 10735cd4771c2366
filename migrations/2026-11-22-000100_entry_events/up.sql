-- The number by which a model cites a tool's result. Only adds: workers of the version before leave it empty.
ALTER TABLE entries ADD COLUMN event_seq integer;
COMMENT ON COLUMN entries.event_seq IS 'session_seq of the event that tells this tool result; empty for all else and in journals of before.';
