-- Questions stay, as sessions that nothing is the same as.
DROP INDEX alert_sessions_thread;
ALTER TABLE alert_sessions DROP CONSTRAINT alert_sessions_question;
UPDATE alert_sessions SET fingerprint = 'question:' || session_id WHERE fingerprint IS NULL;
ALTER TABLE alert_sessions DROP COLUMN parent_id, ALTER COLUMN fingerprint SET NOT NULL;
