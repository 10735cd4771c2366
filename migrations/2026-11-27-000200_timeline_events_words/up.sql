-- Postgres parses the list again for each statement; the program checks the words where it reads them.
ALTER TABLE timeline_events DROP CONSTRAINT timeline_events_type;
