-- Stores texts of skills before a plan names them. One that is known is dated again once a day at most, so that a
-- session of the same skills writes nothing.
INSERT INTO skill_texts AS t (sha256, text, used_at)
SELECT n.sha256, n.text, now() FROM unnest($hashes::bytea[], $texts::text[]) AS n (sha256, text)
ON CONFLICT (sha256) DO UPDATE SET used_at = EXCLUDED.used_at
  WHERE t.used_at < now() - interval '1 day'
