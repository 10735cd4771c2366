-- Writes one checkpoint: all of it or nothing, so no event number is lost. The order matters: `turn` compares the
-- number of the checkpoint and locks the execution, `fence` locks the session and draws the event numbers, `swap` moves
-- the execution on, the others insert. Every statement takes the two locks in this order.
WITH turn AS (
  SELECT 1 FROM agent_executions e
  WHERE e.session_id = $1 AND e.execution_id = $2 AND e.checkpoint = $3::integer - 1
    AND e.status = 'running'
  FOR NO KEY UPDATE
), fence AS (
  UPDATE alert_sessions s
  SET event_seq = s.event_seq + cardinality($4::text[]), attempts = 1,
      lease_expires_at = greatest(s.lease_expires_at, clock_timestamp() + s.lease_period)
  FROM turn
  WHERE s.session_id = $1 AND s.lease_epoch = $5 AND s.lease_token = $6
    AND s.status = 'running'
  RETURNING s.event_seq - cardinality($4::text[]) AS last_seq, s.updates
), swap AS (
  UPDATE agent_executions e
  SET checkpoint = $3, checkpoint_id = $7, iteration = $8, status = $9, error = $10,
      analysis = $11, finished_at = CASE WHEN $9 <> 'running' THEN $12::timestamptz END,
      event_count = e.event_count + cardinality($4::text[]),
      entry_count = e.entry_count + cardinality($13::text[])
  FROM fence
  WHERE e.session_id = $1 AND e.execution_id = $2
  RETURNING e.stage_no, e.agent, e.event_count - cardinality($4::text[]) AS last_event,
            e.entry_count - cardinality($13::text[]) AS last_entry
), events AS (
  INSERT INTO timeline_events (session_id, execution_id, created_at, session_seq, sequence_number, lease_epoch, stage_no,
                               iteration, attempt, event_type, status, content, metadata)
  SELECT $1, $2, $12, f.last_seq + u.n, w.last_event + u.n, $5, w.stage_no,
         nullif($8, 0), nullif($14::integer, 0), u.event_type, u.status, u.content, u.metadata
  FROM fence f, swap w, unnest($4, $15::text[], $16::text[],
                               $17::jsonb[])
       WITH ORDINALITY AS u(event_type, status, content, metadata, n)
), written AS (
  INSERT INTO entries (session_id, execution_id, created_at, entry_no, checkpoint, iteration, kind, role, content,
                       tool_call_id, tool_name, body, provider_data, event_seq)
  SELECT $1, $2, $12, w.last_entry + u.n, $3, $8, u.kind, u.role, u.content,
         u.tool_call_id, u.tool_name, u.body, u.provider_data, f.last_seq + u.event_no
  FROM fence f, swap w,
       unnest($13, $18::text[], $19::text[], $20::text[],
              $21::text[], $22::jsonb[], $23::bytea[],
              $24::integer[])
       WITH ORDINALITY AS u(kind, role, content, tool_call_id, tool_name, body, provider_data, event_no, n)
), begun AS (
  -- The sub-agents that its entries begin. Events of one are there already when its row was lost, and they were
  -- recovered from the stream.
  INSERT INTO agent_executions (session_id, execution_id, started_at, stage_no, agent_no, agent, strategy, backend, model,
                                parent_execution_id, parent_call_id, event_count)
  SELECT $1, u.execution_id, $12, w.stage_no, 0, u.agent, u.strategy, u.backend, u.model,
         $2, u.call_id,
         (SELECT count(*) FROM timeline_events t WHERE t.session_id = $1
                                                AND t.execution_id = u.execution_id)
  FROM swap w, unnest($25::uuid[], $26::text[], $27::text[],
                      $28::text[], $29::text[], $30::text[])
       AS u(execution_id, call_id, agent, strategy, backend, model)
), model_calls AS (
  INSERT INTO llm_interactions (session_id, execution_id, created_at, checkpoint, call_no, iteration, entries_upto,
                                duration_ms, input_tokens, cached_tokens, output_tokens, thinking_tokens, purpose,
                                provider, backend, model, error, response)
  SELECT $1, $2, $12, $3, u.n, $8, u.entries_upto, u.duration_ms, u.input,
         u.cached, u.output, u.thinking, u.purpose, u.provider, u.backend, u.model, u.error, u.response
  FROM swap, unnest($31::integer[], $32::bigint[], $33::bigint[],
                    $34::bigint[], $35::bigint[], $36::bigint[],
                    $37::text[], $38::text[], $39::text[], $40::text[],
                    $41::text[], $42::jsonb[])
       WITH ORDINALITY AS u(entries_upto, duration_ms, input, cached, output, thinking, purpose, provider, backend,
                            model, error, response, n)
), tool_calls AS (
  INSERT INTO tool_interactions (session_id, execution_id, created_at, checkpoint, call_no, iteration, duration_ms,
                                 read_only, state, call_id, tool, arguments, result, error)
  SELECT $1, $2, $12, $3, u.n, $8, u.duration_ms, u.read_only, u.state,
         u.call_id, u.tool, u.arguments, u.result, u.error
  FROM swap, unnest($43::bigint[], $44::boolean[], $45::text[],
                    $46::text[], $47::text[], $48::text[], $49::text[],
                    $50::text[])
       WITH ORDINALITY AS u(duration_ms, read_only, state, call_id, tool, arguments, result, error, n)
)
SELECT f.last_seq + 1 AS first_session_seq, w.last_event + 1 AS first_event, w.agent,
       (SELECT g.name FROM stages g WHERE g.session_id = $1 AND g.stage_no = w.stage_no) AS stage,
       f.updates
FROM fence f, swap w
