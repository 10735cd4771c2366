-- Records what a person says about the analysis of an ended session. The newest verdict counts, and none is changed. A
-- session has a limited number of them, or a few more that arrive at the same moment. Sent again, a verdict finds its id.
WITH session AS (
  SELECT s.session_id, s.chain, s.finished_at IS NOT NULL AND s.status <> 'limited' AS has_ended,
         (SELECT count(*) FROM verdicts v WHERE v.session_id = s.session_id) AS verdicts
  FROM alert_sessions s WHERE s.session_id = $session_id::uuid
), written AS (
  INSERT INTO verdicts (verdict_id, session_id, person, account, channel, verdict, cause, action)
  SELECT $id::uuid, s.session_id, $person::text, $account::text, $channel::text, $verdict::text, $cause::text, $action::text
  FROM session s WHERE s.has_ended AND s.verdicts < $max::bigint
  ON CONFLICT (verdict_id) DO NOTHING
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT FROM written) THEN 'recorded'
            WHEN EXISTS (SELECT FROM verdicts v WHERE v.verdict_id = $id) THEN 'repeated'
            WHEN s.session_id IS NULL THEN 'unknown_session'
            WHEN NOT s.has_ended THEN 'not_ended'
            WHEN s.verdicts >= $max THEN 'too_many_verdicts'
            -- Another worker records it at this moment.
            ELSE 'repeated' END,
       s.chain
FROM (SELECT 1) one LEFT JOIN session s ON true
