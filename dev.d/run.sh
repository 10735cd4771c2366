# shellcheck shell=bash
# Messages, and the processes of a run: a folder below .dev/ with their pids, which ends with its owner.

say() { printf '%s\n' "$*" >&3; }
die() { printf '\n./dev: %s\n' "$*" >&2; exit 1; }
clock() { if [ -n "${EPOCHREALTIME:-}" ]; then echo "${EPOCHREALTIME/,/.}"; else date +%s; fi; }

# ok <what> <detail> <since>
ok() {
  local took
  took=$(awk -v a="$3" -v b="$(clock)" 'BEGIN {
    t = b - a; if (t < 60) printf "%.1f s", t; else printf "%dm%02ds", t / 60, t % 60 }')
  if [ -t 3 ]; then printf '\r\033[K' >&3; fi
  printf '  ok  %-19s  %-50s  %6s\n' "$1" "$2" "$took" >&3
}

# Prints when a process started, which identifies it together with its pid. Prints nothing when it has ended.
born() {
  if [ -r "/proc/$1/stat" ]; then
    sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | awk '$1 != "Z" { print $20 }'
  else
    ps -o lstart= -p "$1" 2>/dev/null || true
  fi
}

# started <process group> <signal that ends it>: records the process, so that this run or a later one stops exactly it
started() { printf '%s\t%s\t%s\n' "$1" "$2" "$(born "$1")" >>"$run/pids"; }

# Stops the processes of a run, the last one first, and removes its files.
stop_run() {
  local dir=$1 pid signal since tries folder
  if [ -f "$dir/pids" ]; then
    awk '{ line[NR] = $0 } END { for (i = NR; i > 0; i--) print line[i] }' "$dir/pids" >"$dir/pids.reversed"
    while IFS=$'\t' read -r pid signal since; do
      [ -n "$since" ] && [ "$(born "$pid")" = "$since" ] || continue
      kill "-$signal" -- "-$pid" 2>/dev/null || true
      tries=0
      while [ "$(born "$pid")" = "$since" ] && [ $((tries += 1)) -lt 100 ]; do sleep 0.05; done
      kill -KILL -- "-$pid" 2>/dev/null || true
    done <"$dir/pids.reversed"
  fi
  if [ -f "$dir/elsewhere" ]; then
    while IFS= read -r folder; do rm -rf "$folder"; done <"$dir/elsewhere"
  fi
  rm -rf "$dir"
}

# Runs a command in its own process group, so that a signal to this script ends all of its processes.
foreground() {
  local code=0
  set -m
  "$@" &
  front=$!
  set +m
  started "$front" INT
  wait "$front" || code=$?
  end_front
  return "$code"
}

# Closes what a process in the background must not inherit: a reader of this script's output would wait for its end.
close_inherited() {
  local fd
  for fd in /dev/fd/*; do
    fd=${fd##*/}
    # 255 is the file of this script, which bash closes in each program.
    case $fd in [012] | 255 | *[!0-9]*) ;; *) eval "exec $fd>&-" ;; esac
  done
}

end_front() {
  local tries=0
  [ -n "$front" ] || return 0
  kill -INT -- "-$front" 2>/dev/null || true
  while [ -n "$(born "$front")" ] && [ $((tries += 1)) -lt 100 ]; do sleep 0.05; done
  kill -KILL -- "-$front" 2>/dev/null || true
  { wait "$front"; } 2>/dev/null || true
  front=
}

finish() {
  trap '' INT TERM HUP
  end_front
  if [ -n "$run" ] && [ -z "$keep" ]; then stop_run "$run"; fi
}

# begin <name>: makes the directory of this run, and stops the run in every case
begin() {
  local old
  mkdir -p .dev
  for old in .dev/*/; do
    # This directory belongs to a run that was killed.
    if [ -f "$old/owner" ] && [ ! -f "$old/environment" ] && ! owned "$old"; then stop_run "$root/$old"; fi
  done
  mkdir ".dev/$1" 2>/dev/null || die "another ./dev works in .dev/$1"
  run=$root/.dev/$1
  printf '%s\t%s\n' "$$" "$(born "$$")" >"$run/owner"
  trap finish EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
}

# Whether the ./dev that made a directory is still running.
owned() {
  local pid since
  IFS=$'\t' read -r pid since <"$1/owner" && [ "$(born "$pid")" = "$since" ]
}
