DROP INDEX alerts_source;
