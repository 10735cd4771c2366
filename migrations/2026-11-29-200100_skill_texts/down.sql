DROP TABLE skill_texts;
