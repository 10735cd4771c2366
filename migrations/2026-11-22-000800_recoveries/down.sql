DROP TABLE session_recoveries;
