# shellcheck shell=bash
# ./dev prove: everything that CONTRIBUTING.md names.

# prove [part…]: runs the tests that prove by quantity as a whole, and every command that no other check runs. A part that
# cannot run here is named with its reason. The logs stay in .dev/prove.
prove() {
  local part reason since code failed=() logs=$root/.dev/prove
  local parts=(tests chaos upgrade kube bench image fuzz mutants advisories)
  for part; do
    case " ${parts[*]} " in *" $part "*) ;; *) printf './dev: prove has no part "%s"; there are: %s\n' "$part" "${parts[*]}" >&2; exit 2 ;; esac
  done
  [ $# -eq 0 ] || parts=("$@")
  begin "prove.$$"
  mkdir -p "$logs"
  for part in "${parts[@]}"; do
    since=$(clock)
    reason=$(cannot_prove "$part")
    if [ -n "$reason" ]; then
      skipped+=("prove $part: $reason")
      continue
    fi
    say "  …   $part: its log is .dev/prove/$part.log"
    code=0
    foreground "prove_$part" >"$logs/$part.log" 2>&1 </dev/null || code=$?
    if [ "$code" = 0 ]; then
      ok "$part" "" "$since"
      grep -aE '^SKIPPED: ' "$logs/$part.log" | sed "s/^/  $part: /" >&3 || true
    elif [ "$part" = advisories ] && grep -q 'failed to fetch advisory database' "$logs/$part.log"; then
      skipped+=("prove $part: the database of advisories cannot be fetched")
    else
      failed+=("$part")
      say "  FAILED  $part, exit code $code; the end of .dev/prove/$part.log:"
      { grep -aE -A3 '^FAILED: |panicked at|^error' "$logs/$part.log" | cut -c1-400 | awk 'NR <= 40' || true; tail -15 "$logs/$part.log"; } >&3
    fi
  done
  for reason in ${skipped[@]+"${skipped[@]}"}; do say "SKIPPED: $reason"; done
  [ ${#failed[@]} -eq 0 ] || die "not proved: ${failed[*]}"
}

# cannot_prove <part>: prints why a part cannot run here
cannot_prove() {
  case $1 in
    upgrade)
      if ! command -v git >/dev/null || ! git rev-parse --verify --quiet HEAD >/dev/null; then
        echo "there is no git repository with the older version"
      elif [ -z "$(git log -1 --format=%H -- migrations)" ] || [ "$(git rev-parse --is-shallow-repository)" = true ]; then
        echo "the history of the repository is not here"
      fi ;;
    kube)
      if [ "$(uname)" != Linux ]; then echo "it needs Linux"
      elif [ -z "${KUBE_APISERVER_BIN:-}" ] && ! command -v go >/dev/null; then echo "Go is missing"; fi ;;
    image) (find_engine) >/dev/null 2>&1 || echo "neither Docker nor Podman nor Buildah works here" ;;
    mutants) command -v python3 >/dev/null && command -v git >/dev/null || echo "python3 or git is missing" ;;
  esac
}

# Every test, the long ones whole. Loads compare times, so they do not share the processors with as many others as in the
# suite.
prove_tests() {
  TARSY_TEST_DEPTH=prove PROPTEST_CASES=1024 RUST_TEST_THREADS=${RUST_TEST_THREADS:-2} "$root/dev" test --no-fail-fast -- --include-ignored
}

prove_chaos() { "$root/dev" chaos --minutes 2 && "$root/dev" chaos --approvals 200; }  # `tests` has a longer run
prove_upgrade() { "$root/dev" upgrade; }
prove_kube() { "$root/dev" kube; }
prove_bench() { "$root/dev" bench --smoke; }
prove_image() { "$root/dev" image --check; }
prove_fuzz() { cargo test --release --manifest-path fuzz/Cargo.toml -- --test-threads 1; }
prove_mutants() { "$root/.ci/mutants"; }
prove_advisories() { "$root/dev" advisories; }
