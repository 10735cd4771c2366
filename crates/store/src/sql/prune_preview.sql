-- Counts the rows that the deleting statements would delete if they were repeated until nothing is left. An age of null
-- keeps all rows.
WITH cutoff AS (
  SELECT coalesce(now() - make_interval(secs => $sessions::float8), '-infinity') AS sessions,
         coalesce(now() - make_interval(secs => $alerts::float8), '-infinity') AS alerts,
         coalesce(now() - make_interval(secs => $entries::float8), '-infinity') AS entries,
         coalesce(now() - make_interval(secs => $llm_interactions::float8), '-infinity') AS llm_interactions,
         coalesce(now() - make_interval(secs => $tool_interactions::float8), '-infinity') AS tool_interactions,
         -- Without an age of their own, requests are deleted with their sessions.
         coalesce(now() - make_interval(secs => $approvals::float8), 'infinity') AS approvals
), loose AS (
  SELECT a.alert_id FROM alerts a, cutoff c WHERE a.settled_at < c.alerts AND a.place <> 'opened'
    AND NOT EXISTS (SELECT FROM notifications n WHERE n.session_id = a.alert_id AND n.closed_at IS NULL
                      AND n.created_at > now() - interval '2 days')
), whole AS (
  SELECT s.session_id FROM alert_sessions s, cutoff c
  WHERE s.settled_at < c.sessions
    AND NOT EXISTS (SELECT FROM notifications n WHERE n.session_id = s.session_id AND n.closed_at IS NULL
                      AND n.created_at > now() - interval '2 days')
    AND NOT EXISTS (SELECT FROM alert_sessions q
                    WHERE q.parent_id = s.session_id AND NOT coalesce(q.settled_at < c.sessions, false))
    AND NOT EXISTS (SELECT FROM alerts j
                    WHERE j.joined_session_id = s.session_id AND NOT coalesce(j.settled_at < c.alerts, false))
), requests AS (
  SELECT p.session_id, p.event_seq FROM approvals p, cutoff c
  WHERE p.asked_at < c.approvals
    AND (p.session_id IN (TABLE whole)
         OR c.approvals < 'infinity' AND NOT EXISTS (SELECT FROM alert_sessions s WHERE s.session_id = p.session_id))
)
SELECT 'alert_sessions' AS relation, count(*) AS deleted FROM whole
UNION ALL SELECT 'alerts', (SELECT count(*) FROM loose) + (SELECT count(*) FROM whole)
UNION ALL SELECT 'alert_updates', count(*) FROM alert_updates JOIN whole USING (session_id)
UNION ALL SELECT 'session_plans', count(*) FROM session_plans JOIN whole USING (session_id)
UNION ALL SELECT 'session_recoveries', count(*) FROM session_recoveries JOIN whole USING (session_id)
UNION ALL SELECT 'session_words', count(*) FROM session_words JOIN whole USING (session_id)
UNION ALL SELECT 'stages', count(*) FROM stages JOIN whole USING (session_id)
UNION ALL SELECT 'agent_executions', count(*) FROM agent_executions JOIN whole USING (session_id)
UNION ALL SELECT 'timeline_events', count(*) FROM timeline_events t
          JOIN (TABLE whole UNION ALL TABLE loose) g ON g.session_id = t.session_id
UNION ALL SELECT 'notifications', count(*) FROM notifications t
          JOIN (TABLE whole UNION ALL TABLE loose) g ON g.session_id = t.session_id
UNION ALL SELECT 'verdicts', count(*) FROM verdicts JOIN whole USING (session_id)
UNION ALL SELECT 'approval_votes', count(*) FROM approval_votes v JOIN requests USING (session_id, event_seq)
UNION ALL SELECT 'approvals', count(*) FROM requests
UNION ALL SELECT 'entries', count(*) FROM entries t JOIN alert_sessions s USING (session_id), cutoff c
          WHERE s.settled_at < c.entries OR s.session_id IN (TABLE whole)
UNION ALL SELECT 'llm_interactions', count(*) FROM llm_interactions t JOIN alert_sessions s USING (session_id), cutoff c
          WHERE s.settled_at < c.llm_interactions OR s.session_id IN (TABLE whole)
UNION ALL SELECT 'tool_interactions', count(*) FROM tool_interactions t JOIN alert_sessions s USING (session_id), cutoff c
          WHERE s.settled_at < c.tool_interactions OR s.session_id IN (TABLE whole)
UNION ALL SELECT 'skill_texts', count(*) FROM skill_texts t, cutoff c WHERE t.used_at < c.sessions - interval '14 days'
