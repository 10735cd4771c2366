# shellcheck shell=bash
# ./dev chaos, ./dev upgrade and ./dev bench.

chaos() {
  local minutes='' approvals=0 seed=$RANDOM code=0
  while [ $# -gt 0 ]; do
    [ $# -gt 1 ] || usage
    case $1 in
      --minutes) [[ $2 =~ ^[0-9]+(\.[0-9]+)?$ ]] || usage; minutes=$2 ;;
      --approvals) [[ $2 =~ ^[1-9][0-9]{0,4}$ ]] || usage; approvals=$2 ;;
      --seed) [[ $2 =~ ^[0-9]+$ ]] || usage; seed=$2 ;;
      *) usage ;;
    esac
    shift 2
  done
  if [ -n "$minutes" ] && [ "$approvals" -gt 0 ]; then
    die "--minutes and --approvals exclude each other: the number of investigations determines the length"
  fi
  begin "chaos.$$"
  cargo_log=$root/.dev/chaos.log
  : >"$cargo_log"
  need_nats
  start_test_postgres
  build test --no-run --test it
  # The output of the test harness contains the report a second time.
  TARSY_CHAOS_MINUTES=${minutes:-10} TARSY_CHAOS_APPROVALS=$approvals TARSY_CHAOS_SEED=$seed TARSY_CHAOS_REPORT=$run/report \
    foreground cargo_with test --locked --quiet --test it -- --exact --nocapture \
    proofs::chaos::every_guarantee_holds_under_faults_of_every_kind >>"$cargo_log" || code=1
  if [ -f "$run/report" ]; then
    cp "$run/report" "$root/.dev/chaos.report"
    cat "$run/report"
    say "The report is also in .dev/chaos.report."
  fi
  return "$code"
}

# Builds the older commit below .dev/upgrade, with a target folder of its own that later runs use again.
upgrade() {
  local ref=${1:-} commit dir=$root/.dev/upgrade since
  [ $# -le 1 ] || usage
  if [ -z "$ref" ]; then
    ref=$(git describe --tags --abbrev=0 2>/dev/null) || ref=$(git log -1 --format=%H^ -- migrations)
  fi
  commit=$(git rev-parse --verify --quiet "$ref^{commit}") || die "$ref is no commit of this repository"
  begin "upgrade.$$"
  cargo_log=$root/.dev/upgrade.log
  : >"$cargo_log"
  since=$(clock)
  if [ "$(cat "$dir/commit" 2>/dev/null)" != "$commit" ]; then
    rm -rf "$dir/source" "$dir/commit"
    mkdir -p "$dir/source"
    git archive "$commit" | tar -x -C "$dir/source"
    # The first build there uses the dependencies that this version has compiled, where files can be linked.
    if [ ! -d "$dir/target" ] && [ -d "$target/debug/deps" ]; then
      mkdir -p "$dir/target/debug"
      cp -Rl "$target/debug/deps" "$target/debug/build" "$target/debug/.fingerprint" "$dir/target/debug/" 2>/dev/null || true
      # Cargo takes the results of this version's own packages for those of the older one: it knows both by the same name.
      find "$dir/target/debug" -name '*tarsy*' -prune -exec rm -rf {} +
    fi
  fi
  say "The previous version is ${commit:0:12}, $(git log -1 --format=%s "$commit"). Its first build takes minutes."
  need_libpq
  (cd "$dir/source" && CARGO_TARGET_DIR=$dir/target cargo_with build --locked --bin tarsy) >>"$cargo_log" 2>&1 ||
    die "the previous version cannot be built: see $cargo_log"
  echo "$commit" >"$dir/commit"
  ok "previous version" "${dir#"$root/"}/target/debug/tarsy" "$since"
  need_nats
  start_test_postgres
  TARSY_TEST_PREVIOUS=$dir/target/debug/tarsy \
    foreground cargo_with test --locked --test it -- --nocapture proofs::load::upgrade
}

# With --smoke each program only shows that it still runs: its figures without optimisation mean nothing.
bench() {
  local profile=() parts=(--bench investigation --bench llm_service --bench mcp_client)
  if [ "${1:-}" = --smoke ]; then
    [ $# -eq 1 ] || usage
    profile=(--profile dev)
    shift
  fi
  begin "bench.$$"
  need_libpq
  need_nats
  start_test_postgres
  if [ ${#profile[@]} -gt 0 ]; then
    foreground cargo_with bench --locked "${profile[@]}" --bench investigation -- statements
    parts=(--bench llm_service --bench mcp_client)
  elif [ $# -gt 0 ]; then
    parts=(--bench investigation -- "$@")
  fi
  foreground cargo_with bench --locked ${profile[@]+"${profile[@]}"} "${parts[@]}"
}
