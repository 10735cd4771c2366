DROP INDEX notifications_receipt;
