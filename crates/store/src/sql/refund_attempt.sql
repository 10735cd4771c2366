-- Refunds one attempt of an undecided alert. Sent again after a lost reply, it finds its own id and changes nothing.
UPDATE alerts a SET attempts = greatest(a.attempts - 1, 0), last_delivery = $id
WHERE a.alert_id = $alert_id AND a.place = 'undecided' AND a.last_delivery <> $id
