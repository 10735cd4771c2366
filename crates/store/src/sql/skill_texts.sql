-- Reads texts of skills by their hashes.
SELECT t.sha256, t.text FROM skill_texts t WHERE t.sha256 = ANY ($hashes::bytea[])
