-- Writes one transition of a session: a stage begins with its executions, or a stage ends. All of it or nothing.
WITH fence AS (
  UPDATE alert_sessions s
  SET step = $number, event_seq = s.event_seq + cardinality($events.event_type::text[]), attempts = 1,
      lease_expires_at = greatest(s.lease_expires_at, clock_timestamp() + s.lease_period)
  WHERE s.session_id = $lease.session_id.0 AND s.lease_epoch = $epoch AND s.lease_token = $lease.token
    AND s.step = $number::integer - 1 AND s.status = 'running'
  RETURNING s.event_seq - cardinality($events.event_type::text[]) AS last_seq
), events AS (
  INSERT INTO timeline_events (session_id, created_at, session_seq, lease_epoch, stage_no, event_type, status, content, metadata)
  SELECT $lease.session_id.0, $at::timestamptz, f.last_seq + u.n, $epoch, u.stage_no, u.event_type, u.status,
         u.content, u.metadata
  FROM fence f, unnest($events.event_type, $event_stage::integer[], $events.status::text[], $events.content::text[],
                       $events.metadata::jsonb[])
       WITH ORDINALITY AS u(event_type, stage_no, status, content, metadata, n)
), begun_stages AS (
  INSERT INTO stages (session_id, stage_no, started_at, name, success_policy)
  SELECT $lease.session_id.0, u.stage_no, $at, u.name, u.policy
  FROM fence, unnest($changes.stages.stage_no::integer[], $changes.stages.name::text[],
                     $changes.stages.policy::text[]) AS u(stage_no, name, policy)
), begun_executions AS (
  INSERT INTO agent_executions (session_id, execution_id, started_at, stage_no, agent_no, agent, strategy, backend, model,
                                event_count)
  -- Its events are there already when the row of the execution was lost and the events were recovered from the stream.
  SELECT $lease.session_id.0, u.execution_id, $at, u.stage_no, u.agent_no, u.agent, u.strategy, u.backend, u.model,
         (SELECT count(*) FROM timeline_events t WHERE t.session_id = $lease.session_id.0
                                                AND t.execution_id = u.execution_id)
  FROM fence, unnest($changes.executions.execution_id::uuid[], $changes.executions.stage_no::integer[],
                     $changes.executions.agent_no::integer[], $changes.executions.agent::text[],
                     $changes.executions.strategy::text[], $changes.executions.backend::text[],
                     $changes.executions.model::text[])
       AS u(execution_id, stage_no, agent_no, agent, strategy, backend, model)
), ended_stages AS (
  UPDATE stages t SET status = u.status, error = u.error, finished_at = $at
  FROM fence, unnest($changes.ended.stage_no::integer[], $changes.ended.status::text[],
                     $changes.ended.error::text[]) AS u(stage_no, status, error)
  WHERE t.session_id = $lease.session_id.0 AND t.stage_no = u.stage_no AND t.status = 'running'
)
SELECT f.last_seq + 1 AS first_session_seq,
       (SELECT t.name FROM stages t WHERE t.session_id = $lease.session_id.0
                                          AND t.stage_no = ($changes.ended.stage_no)[1]) AS ended_stage
FROM fence f
