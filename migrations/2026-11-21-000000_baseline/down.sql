DROP TABLE tool_interactions, llm_interactions, timeline_events;
DROP VIEW messages;
DROP TABLE entries, agent_executions, stages, session_plans, alert_sessions, alerts;
