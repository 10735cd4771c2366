DROP INDEX alerts_severity;
