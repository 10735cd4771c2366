ALTER TABLE alerts DROP COLUMN members;
