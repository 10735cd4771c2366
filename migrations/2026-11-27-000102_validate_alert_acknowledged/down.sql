-- A constraint cannot be made invalid again; the migration before this one replaces it.
SELECT 1;
