-- Epoch and token stay: a renewal that arrives late finds that the session ended under its own lease.
WITH open AS (
  SELECT e.execution_id FROM agent_executions e
  WHERE e.session_id = $lease.session_id.0 AND e.status = 'running'
  ORDER BY e.execution_id FOR NO KEY UPDATE
), fence AS (
  UPDATE alert_sessions s
  SET status = $status, stop_reason = $stop_reason, final_analysis = $final_analysis,
      executive_summary = $executive_summary, error = $error, dead_letter = $dead_letter,
      covered_updates = $covered_updates, mark = $mark, review = $review, step = coalesce($ended.step::integer, s.step),
      event_seq = s.event_seq + cardinality($events.event_type::text[]), lease_owner = NULL,
      lease_expires_at = clock_timestamp(), finished_at = clock_timestamp()
  WHERE s.session_id = $lease.session_id.0 AND s.lease_epoch = $epoch AND s.lease_token = $lease.token
    AND s.status = 'running'
    AND s.step = coalesce($ended.step - 1, s.step)
    -- Executions are locked before the session, as in every statement.
    AND (SELECT count(*) FROM open) >= 0
  RETURNING s.event_seq - cardinality($events.event_type::text[]) AS last_seq,
            -- What alerts reported after the last model call is not covered by the analysis.
            CASE WHEN s.status = 'completed' THEN greatest(s.updates - $covered_updates, 0) ELSE 0 END AS late,
            -- The plan cancels the session when its alert is resolved; no person has to ask for it.
            s.status = 'cancelled'
              AND EXISTS (SELECT FROM session_plans p WHERE p.session_id = $lease.session_id.0
                            AND p.plan ->> 'on_resolved' = 'cancel')
              AND EXISTS (SELECT FROM alert_updates a
                          WHERE a.session_id = $lease.session_id.0 AND a.update_no = s.updates
                            AND a.status = 'resolved') AS is_over
), ended_executions AS (
  UPDATE agent_executions e SET status = $open_status, error = coalesce(e.error, $error), finished_at = $at::timestamptz
  FROM fence, open o WHERE e.session_id = $lease.session_id.0 AND e.execution_id = o.execution_id
), ended_stages AS (
  -- The caller says how the last stage has ended. Any other one that runs ends like the session.
  UPDATE stages t SET status = CASE WHEN t.stage_no = $ended.stage_no::integer THEN $ended.status ELSE $open_status END,
                      error = coalesce(t.error, CASE WHEN t.stage_no = $ended.stage_no THEN $ended.error
                                       ELSE $error END), finished_at = $at
  FROM fence WHERE t.session_id = $lease.session_id.0 AND t.status = 'running'
), events AS (
  INSERT INTO timeline_events (session_id, created_at, session_seq, lease_epoch, stage_no, event_type, status, content, metadata)
  SELECT $lease.session_id.0, $at, f.last_seq + u.n, $epoch, u.stage_no, u.event_type, u.status,
         u.content || CASE WHEN f.is_over AND u.n = cardinality($events.event_type) THEN ': its alert is resolved'
                           WHEN f.late = 0 OR u.n < cardinality($events.event_type) THEN ''
                           WHEN f.late = 1 THEN '; 1 change of the alert came too late for it'
                           ELSE format('; %s changes of the alert came too late for it', f.late) END,
         CASE WHEN f.is_over AND u.n = cardinality($events.event_type)
                THEN u.metadata || jsonb_build_object('cancel_reason', 'alert_resolved')
              WHEN f.late = 0 OR u.n < cardinality($events.event_type) THEN u.metadata
              ELSE u.metadata || jsonb_build_object('late_updates', f.late) END
  FROM fence f, unnest($events.event_type, $event_stage::integer[], $events.status::text[], $events.content::text[],
                       $events.metadata::jsonb[])
       WITH ORDINALITY AS u(event_type, stage_no, status, content, metadata, n)
), worded AS (
  -- A session that a worker of an earlier version opened has no row: it gets all words when it is settled.
  UPDATE session_words w SET words = w.words || array_to_tsvector($words::text[]), has_end = true
  FROM fence WHERE w.session_id = $lease.session_id.0
)
-- Null if the last event has more than the caller gave.
SELECT CASE WHEN late = 0 AND NOT is_over THEN last_seq + 1 END AS first_session_seq,
       (SELECT t.name FROM stages t WHERE t.session_id = $lease.session_id.0
                                          AND t.stage_no = $ended.stage_no) AS ended_stage
FROM fence
