ALTER TABLE alerts RESET (fillfactor);
