-- The newest references of the alerts that joined a session, when a message about it is sent.
CREATE INDEX CONCURRENTLY IF NOT EXISTS alerts_joined_refs ON alerts (joined_session_id, received_at DESC) WHERE refs IS NOT NULL;
