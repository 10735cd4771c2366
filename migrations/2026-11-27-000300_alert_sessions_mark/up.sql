-- What readers have to know of an analysis. Only adds a column, and the table is not rewritten: workers of the version
-- before leave it empty, and it is read by none of their statements.
ALTER TABLE alert_sessions ADD COLUMN mark text;
COMMENT ON COLUMN alert_sessions.mark IS 'incomplete: the last answers of the model were cut off. Empty for an analysis that is whole. An unknown word is shown as a mark.';
