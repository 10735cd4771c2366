-- Changes comments only: results of tool calls are read since the models can page through them.
COMMENT ON TABLE llm_interactions IS 'For reports and audits; no resume reads it. The request is the journal up to entries_upto, so the conversation is stored once.';
COMMENT ON TABLE tool_interactions IS 'For reports and audits, and the whole result of each call, which summaries and tarsy.read_result read. The facts that a resume needs (started, lost) are entries.';
