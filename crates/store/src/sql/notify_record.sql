-- Records the result of an attempt, if no other worker has taken the notification since.
UPDATE notifications n
SET closed_at = CASE WHEN $1::text IS NOT NULL THEN clock_timestamp() END, outcome = $1, reason = $2, receipt = $3,
    in_doubt = $4, due_at = clock_timestamp() + make_interval(secs => $5), lease = NULL
WHERE n.session_id = $6 AND n.route = $7 AND n.moment = $8 AND n.lease = $9 AND n.closed_at IS NULL
