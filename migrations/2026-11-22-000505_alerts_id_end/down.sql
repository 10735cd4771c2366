DROP INDEX alerts_id_end;
