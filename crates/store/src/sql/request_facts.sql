-- Reads the facts of a request on which the rights of a voter depend.
SELECT p.policy, p.quorum, p.channels, p.other_person, a.headers ->> 'Tarsy-Asked-By' AS asked_by
FROM approvals p JOIN alerts a ON a.alert_id = p.session_id
WHERE p.session_id = $session_id AND p.event_seq = $event_seq
