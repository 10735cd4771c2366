ALTER TABLE agent_executions
  ADD CONSTRAINT agent_executions_status
    CHECK (status IN ('running', 'completed', 'failed', 'cancelled', 'timed_out')) NOT VALID;
