-- Deletes sessions, each with everything that belongs to it. A session is kept until it is settled (it has then ended,
-- its events are published and its dead letter is stored), while a question about it exists, and while an alert that
-- joined it exists. `few` limits the rows: a session has about as many rows of each kind as it has events.
WITH old AS (
  SELECT s.session_id, s.event_seq FROM alert_sessions s
  WHERE s.settled_at < now() - make_interval(secs => $age)
    AND NOT EXISTS (SELECT FROM alert_sessions q WHERE q.parent_id = s.session_id)
    AND NOT EXISTS (SELECT FROM alerts j WHERE j.joined_session_id = s.session_id)
  -- A notification that waits keeps its session, until it is given up.
    AND NOT EXISTS (SELECT FROM notifications n WHERE n.session_id = s.session_id AND n.closed_at IS NULL
                      AND n.created_at > now() - interval '2 days')
  ORDER BY s.settled_at LIMIT $limit::bigint
  FOR UPDATE OF s SKIP LOCKED
), few AS (
  SELECT o.session_id
  FROM (SELECT session_id, sum(event_seq) OVER (ORDER BY session_id) - event_seq AS before FROM old) o
  WHERE o.before < $limit
), interactions AS (
  DELETE FROM tool_interactions t USING few f WHERE t.session_id = f.session_id RETURNING 1
), calls AS (
  DELETE FROM llm_interactions t USING few f WHERE t.session_id = f.session_id RETURNING 1
), events AS (
  DELETE FROM timeline_events t USING few f WHERE t.session_id = f.session_id RETURNING 1
), journal AS (
  DELETE FROM entries t USING few f WHERE t.session_id = f.session_id RETURNING 1
), executions AS (
  DELETE FROM agent_executions t USING few f WHERE t.session_id = f.session_id RETURNING 1
), parts AS (
  DELETE FROM stages t USING few f WHERE t.session_id = f.session_id RETURNING 1
), plans AS (
  DELETE FROM session_plans t USING few f WHERE t.session_id = f.session_id RETURNING 1
), recoveries AS (
  DELETE FROM session_recoveries t USING few f WHERE t.session_id = f.session_id RETURNING 1
), words AS (
  DELETE FROM session_words t USING few f WHERE t.session_id = f.session_id RETURNING 1
), updates AS (
  DELETE FROM alert_updates t USING few f WHERE t.session_id = f.session_id RETURNING 1
), messages AS (
  DELETE FROM notifications t USING few f WHERE t.session_id = f.session_id RETURNING 1
), judged AS (
  DELETE FROM verdicts t USING few f WHERE t.session_id = f.session_id RETURNING 1
), votes AS (
  -- Requests and their votes may be kept longer.
  DELETE FROM approval_votes t USING few f WHERE $with_approvals::boolean AND t.session_id = f.session_id RETURNING 1
), requests AS (
  DELETE FROM approvals t USING few f WHERE $with_approvals AND t.session_id = f.session_id RETURNING 1
), openers AS (
  DELETE FROM alerts t USING few f WHERE t.alert_id = f.session_id RETURNING 1
), sessions AS (
  DELETE FROM alert_sessions t USING few f WHERE t.session_id = f.session_id RETURNING 1
)
SELECT 'tool_interactions' AS relation, count(*) AS deleted FROM interactions
UNION ALL SELECT 'llm_interactions', count(*) FROM calls
UNION ALL SELECT 'timeline_events', count(*) FROM events
UNION ALL SELECT 'entries', count(*) FROM journal
UNION ALL SELECT 'agent_executions', count(*) FROM executions
UNION ALL SELECT 'stages', count(*) FROM parts
UNION ALL SELECT 'session_plans', count(*) FROM plans
UNION ALL SELECT 'session_recoveries', count(*) FROM recoveries
UNION ALL SELECT 'session_words', count(*) FROM words
UNION ALL SELECT 'alert_updates', count(*) FROM updates
UNION ALL SELECT 'notifications', count(*) FROM messages
UNION ALL SELECT 'verdicts', count(*) FROM judged
UNION ALL SELECT 'approval_votes', count(*) FROM votes
UNION ALL SELECT 'approvals', count(*) FROM requests
UNION ALL SELECT 'alerts', count(*) FROM openers
UNION ALL SELECT 'alert_sessions', count(*) FROM sessions
