-- Routes that open a limited number of investigations an hour. Only adds: workers of the version before have no such
-- routes, and their sessions count for none.
ALTER TABLE alert_sessions ADD COLUMN limited_route text;
COMMENT ON COLUMN alert_sessions.limited_route IS 'The route whose limit of an hour the session counts for; of a session with the status limited, the route whose alerts above the limit it lists.';

CREATE TABLE route_turns (
  route text   NOT NULL,
  turn  bigint NOT NULL,
  CONSTRAINT route_turns_pkey PRIMARY KEY (route)
) WITH (fillfactor = 20);
COMMENT ON TABLE route_turns IS 'One row per route with a limit: the openings of its sessions take turns, so that no two of them count the same.';
