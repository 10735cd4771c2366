-- Reads votes with their requests, in the order of their times: those about one request, one by its id, or a page of an
-- export.
SELECT v.vote_id, v.session_id, v.event_seq, v.at, v.person, v.account, v.groups, v.channel, v.address, v.verdict,
       v.comment, v.seen_sha256, v.seen_updates, v.refused,
       p.tool, p.policy, p.arguments, p.quorum, p.asked_at, p.outcome, p.closed_at, p.closed_as
FROM approval_votes v LEFT JOIN approvals p ON p.session_id = v.session_id AND p.event_seq = v.event_seq
WHERE ($vote_id::uuid IS NULL OR v.vote_id = $vote_id)
  AND ($session_id::uuid IS NULL OR v.session_id = $session_id) AND ($event_seq::integer IS NULL OR v.event_seq = $event_seq)
  AND ($since.at::timestamptz IS NULL OR v.at >= $since.at)
  AND ($since.ago::float8 IS NULL OR v.at >= now() - make_interval(secs => $since.ago))
  AND ($after::uuid IS NULL OR (v.at, v.vote_id) > (SELECT l.at, l.vote_id FROM approval_votes l WHERE l.vote_id = $after))
ORDER BY v.at, v.vote_id
LIMIT $limit
