-- When the alert of a session fired last, by the clock of its sender. Only adds a column, and the table is not rewritten:
-- workers of the version before leave it as it is.
ALTER TABLE alert_sessions ADD COLUMN fired_at timestamptz;
COMMENT ON COLUMN alert_sessions.fired_at IS 'When its alert fired last, by the clock of the sender; an older resolution changes nothing.';
