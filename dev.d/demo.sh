# shellcheck shell=bash
# ./dev demo: a drill, and what is proposed after it.

drills() { local dir; for dir in examples/drills/*/; do basename "$dir"; done | LC_ALL=C sort; }

# need_drill <name or folder>: sets `drill`; ends this script if there is no such drill.
need_drill() {
  drill=$1
  [ -f "examples/drills/$1/alert.json" ] && return
  # A path is relative to the folder in which this script was called.
  drill=$(cd "$from" && realpath -- "$1" 2>/dev/null) && [ -f "$drill/alert.json" ] && return
  printf './dev: no drill "%s"; there are: %s, and folders with an alert.json\n' "$1" "$(drills | paste -s -d , - | sed 's/,/, /g')" >&2
  exit 2
}

demo() {
  local argument kill=--kill drill=oom-killed provider='' kept='' code=0 rest=()
  case ${1:--} in
    -*) ;;
    # The default incident twice: the second investigation is shown the first one.
    past) rest+=(--again) && shift ;;
    *) need_drill "$1" && shift ;;
  esac
  for argument; do
    case $argument in
      --no-kill) kill= ;;
      --keep) kept=yes ;;
      --list) xtask drills; return ;;  # tarsy prints the same, but may not be built
      --provider | --provider=*) provider=yes rest+=("$argument") ;;
      *) rest+=("$argument") ;;
    esac
  done
  if [ -z "$kept" ]; then
    begin "demo.$$"
  else
    if [ -f .dev/up/environment ]; then die "a system is running: ./dev down stops it and deletes its data"; fi
    begin up
  fi
  cargo_log=$root/.dev/demo.log
  : >"$cargo_log"
  say "Everything stays in .dev/ and target/; Ctrl-C stops and cleans up. Log: .dev/demo.log"
  build
  # The arguments, and the key of a provider, are checked before any server is started.
  "$target/debug/tarsy" drill "$drill" ${rest[@]+"${rest[@]}"} --print-config >"$run/tarsy.yaml" || exit
  if [ -n "$provider" ]; then foreground "$target/debug/tarsy" drill "$drill" "${rest[@]}" --check-provider; fi
  start_nats
  start_postgres
  # The drill names no commands for servers that end with it.
  DATABASE_URL=$pg_url foreground "$target/debug/tarsy" drill "$drill" $kill ${rest[@]+"${rest[@]}"} --servers-end || code=$?
  if [ -n "$kept" ]; then
    say
    start_roles "$run/tarsy.yaml"
    printf '%s\n' "demo" >"$run/what"
    say_kept "$drill" "$provider"
  elif [ "$code" = 0 ]; then
    say
    say "Next:"
    say "    ./dev demo --keep      # the same, and the system keeps running: read the result, ask about it"
    say "    ./dev demo disk-full   # another incident; ./dev demo --list names them"
    say "    ./dev demo past        # an incident that came before: its investigation is shown the earlier one"
    say "    ./dev demo sub-agents  # two sub-agents are at work when the worker is killed"
    say "    ./dev demo approve-restart  # a call waits for a person when the worker is killed; --no-approve"
    say "    eval \"\$(./dev up)\"     # a running system to which you submit an alert yourself"
  fi
  return "$code"
}

# say_kept <drill> <whether a model answers>: how the result of a drill is read after it.
say_kept() {
  local session here=.
  session=$("$target/debug/tarsy" sessions list --json | sed -n 's/.*"session_id":"\([^"]*\)".*/\1/p' | tail -1)
  session=${session: -8}
  [ "$from" = "$root" ] || here=$(printf %q "$root")
  say
  say "The system keeps running. In any shell:"
  say "    eval \"\$($here/dev up)\"          # sets the variables of the running system"
  say "    tarsy sessions show $session    # the result"
  say "    tarsy watch $session            # the timeline from its beginning"
  if [ -n "$2" ]; then
    say "    tarsy ask $session 'How sure is that?'"
  elif [ "$1" = oom-killed ]; then
    say "    tarsy ask $session 'Would a limit of 768Mi be enough?'"
  fi
  say "    $here/dev down                    # stops it and deletes its data"
  say "In a browser: $(cat "$run/pages")/s/$session"
}
