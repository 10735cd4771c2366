#!/bin/sh
# What the image `postgres` does at its first start, with the programs in the directory $1 and on the address $2.
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  "$1/initdb" --pgdata="$PGDATA" --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" --auth=scram-sha-256 \
    --encoding=UTF8 --locale=C --no-sync
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
  echo "CREATE DATABASE $POSTGRES_USER;" | "$1/postgres" --single -D "$PGDATA" postgres
fi
exec "$1/postgres" -D "$PGDATA" -c listen_addresses="$2" -c unix_socket_directories= -c fsync=off
