-- Postgres parses the list again for each statement; the program checks the words where it reads them.
ALTER TABLE alert_sessions DROP CONSTRAINT alert_sessions_status;
