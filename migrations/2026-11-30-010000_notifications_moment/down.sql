DELETE FROM notifications WHERE moment NOT IN ('started', 'ended');
ALTER TABLE notifications ADD CONSTRAINT notifications_moment_known CHECK (moment IN ('started', 'ended'));
