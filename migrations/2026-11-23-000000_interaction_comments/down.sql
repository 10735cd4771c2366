COMMENT ON TABLE llm_interactions IS 'For people, never read back. The request is the journal up to entries_upto, so the conversation is stored once.';
COMMENT ON TABLE tool_interactions IS 'For people, never read back: the facts that a resume needs (started, lost) are entries.';
