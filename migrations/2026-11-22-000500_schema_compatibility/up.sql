-- A schema says which programs may use it: those that know the migration `oldest_program`, or a later one. A migration
-- that only adds leaves the row alone. One after which the program before cannot go on sets it to its own version.
CREATE TABLE schema_compatibility (
  only_row       boolean NOT NULL DEFAULT true,
  oldest_program text    NOT NULL,
  CONSTRAINT schema_compatibility_pkey PRIMARY KEY (only_row),
  CONSTRAINT schema_compatibility_one CHECK (only_row)
);
COMMENT ON TABLE schema_compatibility IS 'One row: a program whose newest migration is oldest_program or later may use this schema, also when the schema has migrations that the program does not know.';
-- Programs before this one do not read the table and refuse every newer schema.
INSERT INTO schema_compatibility (oldest_program) VALUES ('20261122000500');
