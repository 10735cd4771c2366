-- Stores the sequence under which the job of an alert was queued again.
UPDATE alerts a SET stream_sequence = $stream_sequence WHERE a.alert_id = $alert_id
