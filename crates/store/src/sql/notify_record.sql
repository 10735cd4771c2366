-- Records the result of an attempt, if no other worker has taken the notification since.
UPDATE notifications n
SET closed_at = CASE WHEN $outcome::text IS NOT NULL THEN clock_timestamp() END, outcome = $outcome, reason = $reason,
    receipt = $receipt, in_doubt = $in_doubt, due_at = clock_timestamp() + make_interval(secs => $retry_after), lease = NULL
WHERE n.session_id = $session AND n.route = $route AND n.moment = $moment AND n.lease = $lease AND n.closed_at IS NULL
