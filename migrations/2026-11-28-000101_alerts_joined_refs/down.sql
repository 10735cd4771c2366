DROP INDEX alerts_joined_refs;
