UPDATE alerts a SET stream_sequence = $1 WHERE a.alert_id = $2
