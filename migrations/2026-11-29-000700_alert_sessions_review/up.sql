-- The outcome of a review. Only adds a column, and the table is not rewritten: workers of the version before leave it
-- empty, and it is read by none of their statements.
ALTER TABLE alert_sessions ADD COLUMN review jsonb;
COMMENT ON COLUMN alert_sessions.review IS 'The outcome of the review of the analysis: its verdict and the model that looked. Empty where no review was due.';
