DROP TABLE event_key;
