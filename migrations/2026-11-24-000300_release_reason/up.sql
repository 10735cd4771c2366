-- Why a session was released, so that watchers can be informed. Only adds a column without a default, so nothing is
-- rewritten and workers of the version before go on meanwhile: a release of theirs leaves the value of the release before,
-- whose epoch shows that it is an older one.
ALTER TABLE alert_sessions ADD COLUMN release_reason text;
COMMENT ON COLUMN alert_sessions.release_reason IS 'The lease epoch after the newest release and its reason: "4 model_unavailable".';
