-- Postgres parses the list again for each statement; the program checks the words where it reads them.
ALTER TABLE entries DROP CONSTRAINT entries_role;
