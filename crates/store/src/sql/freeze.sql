-- Begins a freeze of all changes, or ends every one that runs. Each message has a row of its own, so one that is
-- delivered again changes nothing. A freeze that began after the message was sent, `$age` seconds ago, stays: its person
-- did not know of it.
WITH message AS (
  INSERT INTO approval_freezes (freeze_id, is_end, person, reason, until, ended_at, ended_by)
  SELECT $id, $is_end, $person::text, $reason, $until::timestamptz, CASE WHEN $is_end THEN clock_timestamp() END,
         CASE WHEN $is_end THEN $person END
  ON CONFLICT DO NOTHING
  RETURNING is_end
), ended AS (
  UPDATE approval_freezes f SET ended_at = clock_timestamp(), ended_by = $person
  FROM message m WHERE m.is_end AND f.ended_at IS NULL AND f.at <= clock_timestamp() - make_interval(secs => $age)
  RETURNING 1
)
SELECT (SELECT count(*) FROM message) + (SELECT count(*) FROM ended)
