DROP INDEX alert_sessions_completed;
ALTER TABLE alert_sessions DROP COLUMN retry_of;
CREATE INDEX alerts_unsettled ON alerts (received_at) WHERE settled_at IS NULL;
DROP INDEX alerts_loose;
COMMENT ON COLUMN alerts.last_delivery IS 'Random per delivery: a write that is sent again after a lost reply does not count twice.';
ALTER TABLE alerts DROP COLUMN attempts, DROP COLUMN swept_at, DROP COLUMN delivered_at;
