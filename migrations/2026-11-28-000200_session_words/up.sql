-- The words by which people and later investigations find a session. The program makes them, so their number and
-- length have a bound; Postgres' own parser needs quadratic time for some texts. Only adds: workers of the version
-- before write no row, and a worker of this version gives their sessions one.
CREATE TABLE session_words (
  session_id uuid     NOT NULL,
  words      tsvector NOT NULL,
  has_end    boolean  NOT NULL DEFAULT false,
  CONSTRAINT session_words_pkey PRIMARY KEY (session_id)
);
CREATE INDEX session_words_words ON session_words USING gin (words);
COMMENT ON TABLE session_words IS 'One row per session, begun with the words of its alert. Sessions of earlier versions get theirs from a worker, the newest first.';
COMMENT ON COLUMN session_words.words IS 'At most 500 words of 2 to 64 bytes in lower case, and at most 500 hashes of labels, each with = before it.';
COMMENT ON COLUMN session_words.has_end IS 'Whether the words of the analysis are among them.';
