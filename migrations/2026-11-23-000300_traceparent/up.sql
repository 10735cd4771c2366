-- The trace of the newest claim. Only adds a column without a default, so nothing is rewritten and workers of the version
-- before go on meanwhile: a claim of theirs keeps the value of the claim before.

ALTER TABLE alert_sessions ADD COLUMN traceparent text;
COMMENT ON COLUMN alert_sessions.traceparent IS 'The span of the newest claim in the form of W3C Trace Context, which the next attempt links to; null if the claim was not recorded.';
