-- Writes all words of an ended session. The lock on the session keeps it from being pruned meanwhile, which would
-- leave its words behind.
INSERT INTO session_words (session_id, words, has_end)
SELECT s.session_id, array_to_tsvector($words::text[]), true FROM alert_sessions s WHERE s.session_id = $session_id
FOR KEY SHARE OF s
ON CONFLICT (session_id) DO UPDATE SET words = EXCLUDED.words, has_end = true
