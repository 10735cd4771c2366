-- Records the vote of a person, and wakes the session if the vote decides what it waits for. Executions are not locked;
-- the session is locked before the request. Everything that is compared and added up is read from the locked rows,
-- because the snapshot may miss the vote of a rival. Sent again, it finds its id and returns the present state.
WITH session AS (
  SELECT s.session_id, s.updates, s.status, s.cancel_requested_at, s.lease_owner IS NULL AS is_ownerless,
         s.lease_owner IS NULL AND s.lease_expires_at > clock_timestamp() AS is_parked
  FROM alert_sessions s WHERE s.session_id = $session_id FOR NO KEY UPDATE
), judged AS MATERIALIZED (
  SELECT p.session_id, p.event_seq, p.execution_id, p.call_id, p.tool, p.outcome, s.is_parked,
         -- Woken, and no worker has it yet.
         s.status = 'running' AND s.is_ownerless AND NOT s.is_parked AS is_idle,
         CASE WHEN $refused::text IS NOT NULL THEN $refused
           WHEN s.status <> 'running' OR s.cancel_requested_at IS NOT NULL THEN 'ended'
           WHEN p.outcome IS NOT NULL OR p.closed_at IS NOT NULL THEN 'decided'
           WHEN p.expires_at <= clock_timestamp() THEN 'expired'
           WHEN p.call_sha256 <> $seen::bytea THEN 'other_call'
           -- A denial counts whatever has changed.
           WHEN $choice::text <> 'approve' THEN NULL
           WHEN $person::text = ANY (p.decided_by) THEN 'again'
           WHEN s.updates <> $seen_updates::integer THEN 'changed'
           WHEN make_interval(secs => $age) >= p.valid_for THEN 'late'
           WHEN EXISTS (SELECT FROM approval_freezes f
                        WHERE f.ended_at IS NULL AND (f.until IS NULL OR f.until > clock_timestamp())) THEN 'frozen'
         END AS refused
  FROM session s JOIN approvals p ON p.session_id = s.session_id AND p.event_seq = $event_seq
  FOR NO KEY UPDATE OF p
), earlier AS (
  SELECT v.refused FROM approval_votes v WHERE v.vote_id = $id
), vote AS (
  INSERT INTO approval_votes (vote_id, session_id, event_seq, seen_updates, person, account, groups, channel, address,
                              verdict, comment, seen_sha256, refused)
  SELECT $id, j.session_id, j.event_seq, $seen_updates, $person, $account, $groups, $channel, $address, $choice, $comment,
         $seen, j.refused
  FROM judged j
  -- Those that count are few by themselves. The others must not keep a person from denying.
  WHERE j.refused IS NULL
    OR (SELECT count(*) FROM approval_votes v WHERE v.session_id = $session_id AND v.event_seq = $event_seq)
       < $max_votes::bigint
  ON CONFLICT DO NOTHING
  RETURNING refused
), counted AS (
  UPDATE approvals p
  SET votes = p.votes + ($choice = 'approve')::integer,
      decided_by = CASE WHEN $choice = 'approve' THEN p.decided_by || $person ELSE ARRAY[$person] END,
      outcome = CASE WHEN $choice = 'deny' THEN 'denied' WHEN $choice = 'deny_session' THEN 'denied_session'
                     WHEN p.votes + 1 >= p.quorum THEN 'approved' END,
      outcome_at = CASE WHEN $choice <> 'approve' OR p.votes + 1 >= p.quorum
                        THEN clock_timestamp() - make_interval(secs => $age) END,
      channel = CASE WHEN $choice <> 'approve' OR p.votes + 1 >= p.quorum THEN $channel END,
      comment = CASE WHEN $choice <> 'approve' OR p.votes + 1 >= p.quorum THEN $comment END
  FROM vote v, judged j
  WHERE v.refused IS NULL AND p.session_id = j.session_id AND p.event_seq = j.event_seq
  -- A decision about a later call of an answer is stored, and does not wake.
  RETURNING p.outcome, p.votes, p.quorum, p.call_id, p.tool, j.is_parked AND p.outcome IS NOT NULL AND NOT EXISTS (
    SELECT FROM approvals b
    WHERE b.session_id = p.session_id AND b.execution_id = p.execution_id AND b.event_seq < p.event_seq
      AND b.outcome IS NULL AND b.closed_at IS NULL) AS wakes
), numbered AS (
  UPDATE alert_sessions s
  SET event_seq = s.event_seq + 1,
      lease_expires_at = CASE WHEN c.wakes THEN clock_timestamp() ELSE s.lease_expires_at END,
      deadline_at = CASE WHEN c.wakes THEN clock_timestamp() + (s.deadline_at - s.lease_expires_at) ELSE s.deadline_at END
  FROM counted c WHERE s.session_id = $session_id
  RETURNING s.event_seq, s.lease_epoch, c.outcome, c.votes, c.quorum, c.call_id, c.tool, c.wakes
), event AS (
  INSERT INTO timeline_events (session_id, created_at, session_seq, lease_epoch, event_type, status, content, metadata)
  SELECT $session_id, clock_timestamp(), n.event_seq, n.lease_epoch, 'approval_decided', 'completed',
         format(CASE $choice WHEN 'approve' THEN '%s approved the call of %s' WHEN 'deny' THEN '%s denied the call of %s'
                             ELSE '%s denied every call of %s' END, $person, n.tool)
           || CASE WHEN n.outcome IS NULL THEN format(' (%s of %s)', n.votes, n.quorum) ELSE '' END
           || coalesce(': ' || $comment, ''),
         jsonb_strip_nulls(jsonb_build_object(
           'request', $event_seq, 'call_id', n.call_id, 'tool', n.tool, 'by', $person, 'choice', $choice,
           'outcome', n.outcome, 'votes', n.votes, 'quorum', n.quorum, 'channel', $channel))
  FROM numbered n
)
SELECT CASE WHEN EXISTS (SELECT FROM vote) THEN 'recorded'
            WHEN EXISTS (SELECT FROM earlier) THEN 'repeated'
            WHEN (SELECT count(*) FROM approval_votes v WHERE v.session_id = $session_id AND v.event_seq = $event_seq)
                 >= $max_votes THEN 'too_many'
            -- A rival delivery of the same vote is not in the snapshot.
            ELSE 'raced' END AS answer,
       coalesce((SELECT v.refused FROM vote v), (SELECT e.refused FROM earlier e)) AS refused,
       coalesce((SELECT n.outcome FROM numbered n), j.outcome) AS outcome,
       a.subject, a.headers, a.raw, a.stream_sequence
FROM judged j
-- The alert is queued again by the vote that wakes the session, also if it is delivered again before a worker claims it.
LEFT JOIN alerts a ON a.alert_id = j.session_id AND CASE WHEN EXISTS (SELECT FROM vote)
    THEN EXISTS (SELECT FROM numbered n WHERE n.wakes)
    ELSE j.is_idle AND j.outcome IS NOT NULL AND EXISTS (SELECT FROM earlier e WHERE e.refused IS NULL) END
