-- A follow-up question is a session of its own that names the investigation it asks about. It has no fingerprint: it
-- joins nothing, nothing joins it, and it answers for no later alert. Only adds and loosens, so that workers of the
-- version before go on meanwhile: what they write has a fingerprint and no parent.

ALTER TABLE alert_sessions
  ALTER COLUMN fingerprint DROP NOT NULL,
  ADD COLUMN parent_id uuid,
  ADD CONSTRAINT alert_sessions_question CHECK ((parent_id IS NULL) = (fingerprint IS NOT NULL));
COMMENT ON COLUMN alert_sessions.parent_id IS 'The investigation that this session is a question about; never itself a question, so that a thread is flat.';

-- A thread in the order in which its questions were taken up.
CREATE INDEX alert_sessions_thread ON alert_sessions (parent_id, created_at) WHERE parent_id IS NOT NULL;
