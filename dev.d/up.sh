# shellcheck shell=bash
# ./dev up and ./dev down: a system that stays when this script ends.

up() {
  local drill=oom-killed config='' provider=() wanted=$* alerts=examples/drills
  while [ $# -gt 0 ]; do
    case $1 in
      --config=* | --provider=* | --base-url=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ; continue ;;
      --config) [ $# -gt 1 ] || die "--config needs a file"; config=$2; shift ;;
      --provider | --base-url) [ $# -gt 1 ] || die "$1 needs a value"; provider+=("$1" "$2"); shift ;;
      -*) unknown option "$1" --config --provider --base-url ;;
      *) need_drill "$1" ;;
    esac
    shift
  done
  if [ -n "$config" ]; then
    if [ ${#provider[@]} -gt 0 ]; then die "--config has its own providers: leave out ${provider[0]}"; fi
    config=$(cd "$from" && realpath -- "$config" 2>/dev/null) && [ -f "$config" ] || die "there is no such file: --config ${wanted##*--config}"
    wanted="--config $config"
  fi
  if [ -f .dev/up/environment ]; then
    if [ -n "$wanted" ] && [ "$wanted" != "$(cat .dev/up/what)" ]; then
      die "a system of ./dev up $(cat .dev/up/what) is running: ./dev down stops it and deletes its data"
    fi
    say "already running, with pages at $(cat .dev/up/pages); ./dev down stops it"
    print_environment
    return
  fi
  begin up
  cargo_log=$run/build.log
  : >"$cargo_log"
  build
  if [ -n "$config" ]; then
    "$target/debug/tarsy" --config "$config" config check >&2 || exit
  elif [ ${#provider[@]} -gt 0 ]; then
    "$target/debug/tarsy" drill "$drill" "${provider[@]}" --print-config | only_model >"$run/tarsy.yaml" || exit
    foreground "$target/debug/tarsy" drill "$drill" "${provider[@]}" --check-provider
  else
    "$target/debug/tarsy" drill "$drill" --print-config >"$run/tarsy.yaml"
  fi
  start_nats
  start_postgres
  start_roles "${config:-$run/tarsy.yaml}"
  printf '%s\n' "$wanted" >"$run/what"
  [ "$from" = "$root" ] || alerts=$root/$alerts
  case $drill in /*) alerts=$drill ;; *) alerts=$alerts/$drill ;; esac
  if [ -z "$config" ] && [ ${#provider[@]} = 0 ]; then
    say "No model is called: a recording answers, and only the alert that it knows. Try:"
    say "    tarsy submit $alerts/alert.json --watch"
  else
    [ -n "$config" ] || say "The model has no tools. With tools: tarsy init, ./dev up --config tarsy.yaml"
    say "Try:"
    say "    echo 'disk 94 % full on db-3' | tarsy submit - --watch"
  fi
  say "Alerts of Alertmanager and Grafana: POST $(cat "$run/receiver")/alertmanager"
  say "In a browser: $(cat "$run/pages")"
  print_environment
}

# Of a configuration the sections about the model.
only_model() { awk '/^[a-z]/ { of_model = /^(llm_providers|agents|agent_chains|defaults):/ } of_model'; }

# start_roles <configuration>: an LLM service, two workers, a receiver and a web server, which stay when this script ends.
# The files `pages` and `receiver` have the addresses of these two.
start_roles() {
  local url allowed=() # further options of the service
  export DATABASE_URL=$pg_url TARSY_CONFIG=$1
  foreground "$target/debug/tarsy" migrate >&2
  # The user who wrote the configuration is the operator of this service.
  while read -r url; do allowed+=(--allow-base-url "$url"); done \
    < <("$target/debug/tarsy" config show | sed -n 's/^ *base_url: *"\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' | LC_ALL=C sort -u)
  # Of the command that calls this: a drill in a folder has recordings that the service does not know.
  case $drill in /*) allowed+=(--transcripts "$drill") ;; esac
  role llm-service llm-service --listen 127.0.0.1:0 ${allowed[@]+"${allowed[@]}"}
  export TARSY_LLM_ADDR=$address
  role w1 worker --name w1 --listen 127.0.0.1:0
  role w2 worker --name w2 --listen 127.0.0.1:0
  role receiver receive --listen "$(free_or 8475)"
  printf 'http://%s\n' "$address" >"$run/receiver"
  role web web --listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0
  printf 'http://%s\n' "$address" >"$run/pages"
  printf 'export NATS_URL=%q DATABASE_URL=%q TARSY_LLM_ADDR=%q TARSY_CONFIG=%q\n' \
    "$NATS_URL" "$DATABASE_URL" "$TARSY_LLM_ADDR" "$TARSY_CONFIG" >"$run/environment"
  keep=yes
}

# role <name> <arguments>: starts a role in the background and waits for its line `ready <address>`. Sets address.
role() {
  local name=$1 since pid
  shift
  since=$(clock)
  set -m
  (trap '' HUP && close_inherited && exec "$target/debug/tarsy" "$@") >"$run/$name.out" 2>"$run/$name.log" </dev/null &
  pid=$!
  set +m
  started "$pid" TERM
  until address=$(sed -n 's/^ready //p' "$run/$name.out") && [ -n "$address" ]; do
    [ -n "$(born "$pid")" ] || { tail -20 "$run/$name.log" >&2; die "$name does not start: the end of its log is above"; }
    sleep 0.05
  done
  ok "$name" "$address; log: ${run#"$root/"}/$name.log" "$since"
}

# free_or <port>: an address with this port, or with any free one if a program listens on it.
free_or() { if (: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then echo 127.0.0.1:0; else echo "127.0.0.1:$1"; fi; }

print_environment() {
  cat .dev/up/environment
  # shellcheck disable=SC2016  # the shell that reads this expands it
  case :$PATH: in *":$target/debug:"*) ;; *) printf 'export PATH=%q:"$PATH"\n' "$target/debug" ;; esac
}

down() {
  [ -d .dev/up ] || { say "nothing is running"; return; }
  if owned .dev/up; then die "./dev up is still starting: end it with Ctrl-C where it runs"; fi
  stop_run "$root/.dev/up"
  say "stopped"
}
