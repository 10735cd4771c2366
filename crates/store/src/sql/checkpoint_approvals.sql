-- Writes one checkpoint that makes or closes requests for approval. It is `checkpoint.sql` with the lines between the
-- marks `{` and `}`, which a test compares: a checkpoint without requests costs nothing for them. Every statement takes
-- its locks in this order: executions, session, request.
--
-- A request is closed once, and as approved only while the approval of people is valid: a second guard beside the
-- journal. Outcomes are final and only the owner closes, so the snapshot is enough. An end that no person made compares
-- the event number, because a vote of the last moment takes one.
WITH turn AS (
  SELECT 1 FROM agent_executions e
  WHERE e.session_id = $lease.session_id.0 AND e.execution_id = $execution_id AND e.checkpoint = $number::integer - 1
    AND e.status = 'running'
-- {
    AND NOT EXISTS (
      SELECT FROM unnest($closed.call_id::text[], $closed.outcome::text[]) AS c(call_id, outcome)
      LEFT JOIN approvals p ON p.session_id = $lease.session_id.0 AND p.execution_id = $execution_id
                           AND p.call_id = c.call_id
      WHERE p.closed_at IS NOT NULL
        OR c.outcome = 'approved' AND (
          coalesce(p.outcome <> 'approved' OR p.outcome_at <= clock_timestamp() - p.valid_for, true)
          OR EXISTS (SELECT FROM approval_freezes f
                     WHERE f.ended_at IS NULL AND (f.until IS NULL OR f.until > clock_timestamp()))))
-- }
  FOR NO KEY UPDATE
), fence AS (
  UPDATE alert_sessions s
  SET event_seq = s.event_seq + cardinality($events.event_type::text[]), attempts = 1,
      lease_expires_at = greatest(s.lease_expires_at, clock_timestamp() + s.lease_period)
  FROM turn
  WHERE s.session_id = $lease.session_id.0 AND s.lease_epoch = $epoch AND s.lease_token = $lease.token
    AND s.status = 'running'
-- {
    AND s.event_seq = ALL ($closed.seen::integer[])
-- }
  RETURNING s.event_seq - cardinality($events.event_type::text[]) AS last_seq, s.updates
), swap AS (
  UPDATE agent_executions e
  SET checkpoint = $number, checkpoint_id = $id, iteration = $iteration, status = $status, error = $error,
      analysis = $analysis, finished_at = CASE WHEN $status <> 'running' THEN $at::timestamptz END,
      event_count = e.event_count + cardinality($events.event_type::text[]),
      entry_count = e.entry_count + cardinality($entries.kind::text[])
  FROM fence
  WHERE e.session_id = $lease.session_id.0 AND e.execution_id = $execution_id
  RETURNING e.stage_no, e.agent, e.event_count - cardinality($events.event_type::text[]) AS last_event,
            e.entry_count - cardinality($entries.kind::text[]) AS last_entry
), events AS (
  INSERT INTO timeline_events (session_id, execution_id, created_at, session_seq, sequence_number, lease_epoch, stage_no,
                               iteration, attempt, event_type, status, content, metadata)
  SELECT $lease.session_id.0, $execution_id, $at, f.last_seq + u.n, w.last_event + u.n, $epoch, w.stage_no,
         nullif($iteration, 0), nullif($attempt::integer, 0), u.event_type, u.status, u.content, u.metadata
  FROM fence f, swap w, unnest($events.event_type, $events.status::text[], $events.content::text[],
                               $events.metadata::jsonb[])
       WITH ORDINALITY AS u(event_type, status, content, metadata, n)
), written AS (
  INSERT INTO entries (session_id, execution_id, created_at, entry_no, checkpoint, iteration, kind, role, content,
                       tool_call_id, tool_name, body, provider_data, event_seq)
  SELECT $lease.session_id.0, $execution_id, $at, w.last_entry + u.n, $number, $iteration, u.kind, u.role, u.content,
         u.tool_call_id, u.tool_name, u.body, u.provider_data, f.last_seq + u.event_no
  FROM fence f, swap w,
       unnest($entries.kind, $entries.role::text[], $entries.content::text[], $entries.tool_call_id::text[],
              $entries.tool_name::text[], $entries.body::jsonb[], $entries.provider_data::bytea[],
              $entries.event_no::integer[])
       WITH ORDINALITY AS u(kind, role, content, tool_call_id, tool_name, body, provider_data, event_no, n)
), begun AS (
  -- The sub-agents that its entries begin. Events of one are there already when its row was lost, and they were
  -- recovered from the stream.
  INSERT INTO agent_executions (session_id, execution_id, started_at, stage_no, agent_no, agent, strategy, backend, model,
                                parent_execution_id, parent_call_id, event_count)
  SELECT $lease.session_id.0, u.execution_id, $at, w.stage_no, 0, u.agent, u.strategy, u.backend, u.model,
         $execution_id, u.call_id,
         (SELECT count(*) FROM timeline_events t WHERE t.session_id = $lease.session_id.0
                                                AND t.execution_id = u.execution_id)
  FROM swap w, unnest($sub_agents.execution_id::uuid[], $sub_agents.call_id::text[], $sub_agents.agent::text[],
                      $sub_agents.strategy::text[], $sub_agents.backend::text[], $sub_agents.model::text[])
       AS u(execution_id, call_id, agent, strategy, backend, model)
-- {
), asked AS (
  -- The calls that wait for a person, under the numbers of their events. A tool that a person has denied for the whole
  -- session is denied at once.
  INSERT INTO approvals (session_id, event_seq, execution_id, call_id, tool, policy, arguments, call_sha256,
                         schema_sha256, why, evidence, origins, quorum, expires_at, valid_for, on_resolved,
                         other_person, channels, outcome, outcome_at, decided_by, comment)
  SELECT $lease.session_id.0, f.last_seq + u.event_no, $execution_id, u.call_id, u.tool, u.policy, u.arguments,
         decode(u.call_sha256, 'hex'), decode(u.schema_sha256, 'hex'), u.why, u.evidence, u.origins, u.quorum,
         clock_timestamp() + make_interval(secs => u.timeout), make_interval(secs => u.valid_for), u.on_resolved,
         u.other_person, u.channels, d.outcome, d.outcome_at, coalesce(d.decided_by, '{}'), d.comment
  FROM fence f, swap w, jsonb_to_recordset($asked::jsonb) AS u(
         event_no integer, call_id text, tool text, policy text, arguments text, call_sha256 text, schema_sha256 text,
         why text, evidence integer[], origins jsonb, quorum smallint, timeout float8, valid_for float8,
         on_resolved text, other_person boolean, channels text[])
  LEFT JOIN LATERAL (
    SELECT p.outcome, p.outcome_at, p.decided_by, p.comment FROM approvals p
    WHERE p.session_id = $lease.session_id.0 AND p.tool = u.tool AND p.outcome = 'denied_session'
    ORDER BY p.event_seq LIMIT 1) d ON true
), notified AS (
  -- Of each request, the routes that are notified of it, and of its end.
  INSERT INTO notifications (session_id, route, moment)
  SELECT $lease.session_id.0, r.route, format('%s-%s', r.moment, f.last_seq + u.event_no)
  FROM fence f, swap w, jsonb_to_recordset($asked) AS u(event_no integer),
       unnest($notifications.routes::text[], $notifications.moments::text[]) AS r(route, moment)
  ON CONFLICT DO NOTHING
), closed AS (
  UPDATE approvals p SET closed_at = clock_timestamp(), closed_as = u.outcome
  FROM swap w, unnest($closed.call_id, $closed.outcome) AS u(call_id, outcome)
  WHERE p.session_id = $lease.session_id.0 AND p.execution_id = $execution_id AND p.call_id = u.call_id
-- }
), model_calls AS (
  INSERT INTO llm_interactions (session_id, execution_id, created_at, checkpoint, call_no, iteration, entries_upto,
                                duration_ms, input_tokens, cached_tokens, output_tokens, thinking_tokens, purpose,
                                provider, backend, model, error, response)
  SELECT $lease.session_id.0, $execution_id, $at, $number, u.n, $iteration, u.entries_upto, u.duration_ms, u.input,
         u.cached, u.output, u.thinking, u.purpose, u.provider, u.backend, u.model, u.error, u.response
  FROM swap, unnest($models.entries_upto::integer[], $models.duration_ms::bigint[], $models.input::bigint[],
                    $models.cached::bigint[], $models.output::bigint[], $models.thinking::bigint[],
                    $models.purpose::text[], $models.provider::text[], $models.backend::text[], $models.model::text[],
                    $models.error::text[], $models.response::jsonb[])
       WITH ORDINALITY AS u(entries_upto, duration_ms, input, cached, output, thinking, purpose, provider, backend,
                            model, error, response, n)
), tool_calls AS (
  INSERT INTO tool_interactions (session_id, execution_id, created_at, checkpoint, call_no, iteration, duration_ms,
                                 read_only, state, call_id, tool, arguments, result, error)
  SELECT $lease.session_id.0, $execution_id, $at, $number, u.n, $iteration, u.duration_ms, u.read_only, u.state,
         u.call_id, u.tool, u.arguments, u.result, u.error
  FROM swap, unnest($tools.duration_ms::bigint[], $tools.read_only::boolean[], $tools.state::text[],
                    $tools.call_id::text[], $tools.tool::text[], $tools.arguments::text[], $tools.result::text[],
                    $tools.error::text[])
       WITH ORDINALITY AS u(duration_ms, read_only, state, call_id, tool, arguments, result, error, n)
)
SELECT f.last_seq + 1 AS first_session_seq, w.last_event + 1 AS first_event, w.agent,
       (SELECT g.name FROM stages g WHERE g.session_id = $lease.session_id.0 AND g.stage_no = w.stage_no) AS stage,
       f.updates
FROM fence f, swap w
