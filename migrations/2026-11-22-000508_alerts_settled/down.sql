DROP INDEX alerts_settled;
