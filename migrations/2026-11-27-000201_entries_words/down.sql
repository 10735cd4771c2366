ALTER TABLE entries
  ADD CONSTRAINT entries_role CHECK (role IN ('system', 'user', 'assistant', 'tool')) NOT VALID;
