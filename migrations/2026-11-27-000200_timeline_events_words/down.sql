ALTER TABLE timeline_events
  ADD CONSTRAINT timeline_events_type CHECK (event_type IN (
    'llm_thinking', 'llm_response', 'llm_tool_call', 'tool_result', 'mcp_tool_call', 'mcp_tool_summary', 'error',
    'user_question', 'executive_summary', 'final_analysis', 'code_execution', 'google_search_result',
    'url_context_result', 'provider_fallback', 'session_started', 'session_resumed', 'stage_started', 'stage_completed',
    'alert_joined', 'alert_resolved', 'alert_updated', 'alert_acknowledged', 'session_completed', 'session_failed',
    'session_cancelled', 'session_timed_out', 'joined')) NOT VALID;
