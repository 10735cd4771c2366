DROP INDEX alerts_waiting;
