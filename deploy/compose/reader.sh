#!/bin/sh
# Makes the role tarsy_reader, which may only SELECT, in the database of deploy/compose.yaml. Each start runs it: a role
# that exists gets the present password, so it also works with the data of an earlier version.
set -eu

PGPASSWORD=$(cat "$DATABASE_PASSWORD_FILE")
export PGPASSWORD
# psql reads the password from its file, and replaces :'password' by it as a quoted text. No log of the server has it.
psql --no-psqlrc --quiet --single-transaction --set ON_ERROR_STOP=1 <<'END'
\set password `cat "$READER_PASSWORD_FILE"`
SET LOCAL log_statement = 'none';
SET LOCAL log_min_duration_statement = -1;
SELECT 'CREATE ROLE tarsy_reader LOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'tarsy_reader') \gexec
ALTER ROLE tarsy_reader PASSWORD :'password';
GRANT USAGE ON SCHEMA public TO tarsy_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO tarsy_reader;
-- Tables of later migrations.
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO tarsy_reader;
END
