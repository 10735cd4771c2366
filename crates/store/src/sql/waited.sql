-- Reads the seconds since an alert was first received.
SELECT extract(epoch FROM clock_timestamp() - a.received_at)::float8 FROM alerts a WHERE a.alert_id = $alert_id
