DROP TABLE store_probes;
