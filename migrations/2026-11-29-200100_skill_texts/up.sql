-- The texts of skills, each once. Plans name them by their hashes, so that a session loads the text that its list
-- described, on any worker. Only adds: workers of the version before write none, and their plans name none.
CREATE TABLE skill_texts (
  sha256  bytea       NOT NULL,
  used_at timestamptz NOT NULL,
  text    text        NOT NULL,
  CONSTRAINT skill_texts_pkey PRIMARY KEY (sha256)
);
COMMENT ON TABLE skill_texts IS 'One row per text of a skill or of a file of one, masked.';
COMMENT ON COLUMN skill_texts.used_at IS 'The time of a plan that names it, up to some days early: one that is known is dated again once a day at most.';
