-- The moment of a notification is an open set of words: a new one needs no migration. Only removes a check: workers of
-- the version before write the words that they know.
ALTER TABLE notifications DROP CONSTRAINT notifications_moment_known;
COMMENT ON COLUMN notifications.moment IS 'started: due at once; ended: due when the session has ended; covered: a cooldown covers the alert, due at once.';
COMMENT ON COLUMN notifications.session_id IS 'The session, or the alert that was given up or covered without one.';
