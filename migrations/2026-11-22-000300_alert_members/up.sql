-- What fires in an alert. Only adds a column without a default, so nothing is rewritten and workers of the version before
-- go on meanwhile: an investigation that they open has no members and answers for no later alert.

ALTER TABLE alerts ADD COLUMN members uuid[];
COMMENT ON COLUMN alerts.members IS 'A hash of the name and the labels of each alert that fires in it. The cooldown answers only for an alert whose members the investigated one had all of.';
