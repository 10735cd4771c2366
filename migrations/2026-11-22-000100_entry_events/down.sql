ALTER TABLE entries DROP COLUMN event_seq;
