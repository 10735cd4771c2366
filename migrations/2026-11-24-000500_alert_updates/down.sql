ALTER TABLE alert_sessions DROP COLUMN covered_updates, DROP COLUMN updates;
DROP TABLE alert_updates;
