-- The index on an expression over raw text: the search reads session_words.
DROP INDEX CONCURRENTLY IF EXISTS alerts_search;
