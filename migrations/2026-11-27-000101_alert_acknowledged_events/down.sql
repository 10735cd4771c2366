DELETE FROM timeline_events WHERE event_type = 'alert_acknowledged';
ALTER TABLE timeline_events
  DROP CONSTRAINT timeline_events_type,
  ADD CONSTRAINT timeline_events_type CHECK (event_type IN (
    'llm_thinking', 'llm_response', 'llm_tool_call', 'tool_result', 'mcp_tool_call', 'mcp_tool_summary', 'error',
    'user_question', 'executive_summary', 'final_analysis', 'code_execution', 'google_search_result',
    'url_context_result', 'provider_fallback', 'session_started', 'session_resumed', 'stage_started', 'stage_completed',
    'alert_joined', 'alert_resolved', 'alert_updated', 'session_completed', 'session_failed', 'session_cancelled',
    'session_timed_out', 'joined'));
