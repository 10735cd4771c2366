-- Who may publish on the timeline's subjects is the broker's to say; this key tells what a worker has published from what
-- anybody else has. Only adds.
CREATE TABLE event_key (
  only_row boolean NOT NULL DEFAULT true,
  key      bytea   NOT NULL,
  CONSTRAINT event_key_pkey PRIMARY KEY (only_row),
  CONSTRAINT event_key_one CHECK (only_row)
);
COMMENT ON TABLE event_key IS 'One row: the secret that seals published timeline events (HMAC-SHA-256).';
INSERT INTO event_key (key) VALUES (uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));
