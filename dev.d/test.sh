# shellcheck shell=bash
# ./dev test: the programs of tests, one after the other, and a report.

run_tests() {
  local code=0 part filter changed='' base='' times='' program=() selected=() flags=()
  while [ $# -gt 0 ]; do
    case $1 in
      --times) times=1 ;;
      --fail-fast) export TARSY_TEST_FAIL_FAST=1 ;;
      --changed)
        changed=yes
        case ${2:--} in -*) ;; *) base=$2 && shift ;; esac
        ;;
      *) break ;;
    esac
    shift
  done
  begin "test.$$"
  # Random inputs of each property. `./dev prove` asks for more.
  export PROPTEST_CASES=${PROPTEST_CASES:-64}
  export TARSY_TEST_RESULTS=$run/results TARSY_TEST_CPU=$run/cpu TARSY_TEST_TIMES=$times
  : >"$TARSY_TEST_RESULTS"
  : >"$TARSY_TEST_CPU"
  need_libpq
  if [ -n "$changed" ]; then
    .ci/changed ${base:+"$base"} >"$run/changed" || exit
    say "      this change can break: $(tr '\n' ' ' <"$run/changed")"
  fi
  if [ -z "$changed" ] || grep -q '^it ' "$run/changed"; then
    need_nats
    need_test_tools
    start_test_postgres
    # Some packages of Postgres have the server only.
    [ -x "$pg/pg_basebackup" ] || skipped+=("the tests with a standby (there is no pg_basebackup in $pg)")
  fi
  if [ -n "$changed" ] || [ $# = 0 ]; then
    while [ $# -gt 0 ] && [ "$1" != -- ]; do flags+=("$1") && shift; done
    # What is built and tested first says most about a change.
    for part in lib architecture it; do
      selected=()
      if [ -z "$changed" ]; then
        selected=(all)
      else
        while read -r filter; do selected+=("$filter"); done < <(sed -n "s/^$part //p" "$run/changed")
        [ ${#selected[@]} -gt 0 ] || continue
      fi
      case $part in
        lib) program=(--lib) ;;
        *) program=(--test "$part") ;;
      esac
      if [ "${selected[0]}" = all ]; then
        selected=()
      elif [ "$part" = lib ]; then
        for filter in "${selected[@]}"; do
          case $filter in tarsy | xtask) ;; *) filter=tarsy-$filter ;; esac
          program+=(--package "$filter")
        done
        selected=()
      fi
      # A program that fails does not hide what the others show.
      foreground cargo_test --no-fail-fast "${program[@]}" ${flags[@]+"${flags[@]}"} -- \
        ${selected[@]+"${selected[@]}"} "${@:2}" || code=$?
      if [ "$code" != 0 ] && [ -n "${changed}${TARSY_TEST_FAIL_FAST:-}" ]; then break; fi
    done
  else
    foreground cargo_test "$@" || code=$?
  fi
  report_tests
  return "$code"
}

# cargo_test <arguments of cargo test>: with the runner that shows failures at once and notes the times
cargo_test() { cargo_with test --locked --config "target.'cfg(all())'.runner='$root/.ci/test-runner'" "$@"; }

# Prints the times if they were asked for, then each failure again, and what could not run.
report_tests() {
  local what
  if [ -n "$TARSY_TEST_TIMES" ]; then
    xtask times "$TARSY_TEST_RESULTS" "$TARSY_TEST_CPU" >&3 || say "      the times cannot be reported"
  fi
  if [ -f "$TARSY_TEST_RESULTS.failures" ]; then
    say
    cat "$TARSY_TEST_RESULTS.failures" >&3
  fi
  for what in ${skipped[@]+"${skipped[@]}"}; do say "SKIPPED: $what"; done
}

# Starts the Postgres of the tests, and sets the environment of every test.
start_test_postgres() {
  pg_in_memory=yes
  start_postgres fsync=off full_page_writes=off max_connections=400 max_wal_size=256MB
  # The tests start their own servers, so they must not connect to servers of the surrounding shell.
  unset NATS_URL DATABASE_URL TARSY_LLM_ADDR
  export TARSY_TEST_NATS_SERVER=$nats TARSY_TEST_DATABASE_URL=$pg_url
}
