-- Inserts an alert or counts one more delivery of it. A delivery with another body changes nothing, and neither does
-- the same statement when it is sent again. Only a delivery of an undecided alert counts as an attempt.
INSERT INTO alerts AS a (alert_id, last_delivery, stream_sequence, body_sha256, subject, headers, raw)
VALUES ($alert_id, $delivery, $stream_sequence, $body_sha256, $subject, $headers, $raw)
ON CONFLICT ON CONSTRAINT alerts_pkey DO UPDATE
SET deliveries = a.deliveries
      + (a.body_sha256 = excluded.body_sha256 AND a.last_delivery <> excluded.last_delivery)::integer,
    attempts = a.attempts + (a.body_sha256 = excluded.body_sha256 AND a.last_delivery <> excluded.last_delivery
                             AND a.place = 'undecided')::integer,
    last_delivery = CASE WHEN a.body_sha256 = excluded.body_sha256 THEN excluded.last_delivery ELSE a.last_delivery END,
    stream_sequence = CASE WHEN a.body_sha256 = excluded.body_sha256 THEN excluded.stream_sequence ELSE a.stream_sequence END,
    delivered_at = CASE WHEN a.body_sha256 = excluded.body_sha256 THEN clock_timestamp() ELSE a.delivered_at END
RETURNING a.body_sha256 = $body_sha256 AS same_body, a.place, a.attempts, a.joined_session_id, a.dead_reason
