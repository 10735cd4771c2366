DELETE FROM notifications WHERE moment NOT IN ('started', 'ended');
ALTER TABLE notifications ADD CONSTRAINT notifications_moment_known CHECK (moment IN ('started', 'ended'));
COMMENT ON COLUMN notifications.moment IS 'started: due at once; ended: due when the session has ended.';
COMMENT ON COLUMN notifications.session_id IS 'The session, or the alert that was given up without one.';
