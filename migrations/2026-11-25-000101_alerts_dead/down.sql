DROP INDEX alerts_dead;
