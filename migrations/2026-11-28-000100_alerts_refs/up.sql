-- The sender's own ids of what an alert is about. Only adds a column, and the table is not rewritten: workers of the
-- version before leave it empty, and it is read by none of their statements.
ALTER TABLE alerts ADD COLUMN refs jsonb;
COMMENT ON COLUMN alerts.refs IS 'Ids by their names, such as {"incident": "PGR0VU2"}: at most 8 of at most 256 bytes. Empty for an alert without any.';
