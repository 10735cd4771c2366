-- Postgres parses the list again for each statement; the program checks the words where it reads them.
ALTER TABLE agent_executions DROP CONSTRAINT agent_executions_status;
