ALTER TABLE tool_interactions
  ADD CONSTRAINT tool_interactions_state CHECK (state IN ('done', 'failed', 'lost')) NOT VALID;
