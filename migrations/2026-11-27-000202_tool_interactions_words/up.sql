-- Postgres parses the list again for each statement; the program checks the words where it reads them.
ALTER TABLE tool_interactions DROP CONSTRAINT tool_interactions_state;
