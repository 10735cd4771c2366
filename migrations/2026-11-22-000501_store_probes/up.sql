-- Workers write here every two seconds, to see that the database takes writes. Few rows for ever: each worker picks one
-- of 64 slots, so that no row is waited for and none is left behind. No index has what changes (HOT).
CREATE TABLE store_probes (
  slot       smallint    NOT NULL,
  written_at timestamptz NOT NULL,
  CONSTRAINT store_probes_pkey PRIMARY KEY (slot)
) WITH (fillfactor = 20);
COMMENT ON TABLE store_probes IS 'When workers last saw that the database takes writes. For nothing else.';
