-- Stores the sequence under which the job of an alert was queued again.
UPDATE alerts a SET stream_sequence = $1 WHERE a.alert_id = $2
