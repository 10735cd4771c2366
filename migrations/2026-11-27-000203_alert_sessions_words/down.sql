ALTER TABLE alert_sessions
  ADD CONSTRAINT alert_sessions_status
    CHECK (status IN ('running', 'completed', 'failed', 'cancelled', 'timed_out')) NOT VALID;
