DROP TABLE session_words;
