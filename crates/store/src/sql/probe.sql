-- A small write: shows whether the database accepts writes.
INSERT INTO store_probes AS p (slot, written_at) VALUES ($slot, clock_timestamp())
ON CONFLICT ON CONSTRAINT store_probes_pkey DO UPDATE SET written_at = excluded.written_at
