-- A question that is asked in a thread of Slack finds its investigation by the receipt of a message in that thread.
CREATE INDEX CONCURRENTLY IF NOT EXISTS notifications_receipt ON notifications (receipt) WHERE receipt IS NOT NULL;
