# shellcheck shell=bash
# Builds of cargo: libpq, the binary with a line of progress, and the programs of xtask/.

compiles() { printf '%s\n' "$1" | "${CC:-cc}" -x c - "${@:2}" >/dev/null 2>&1; }
links_libpq() { compiles 'int main(void) { return 0; }' -o /dev/null "-L$(pg_config --libdir 2>/dev/null || echo .)" -lpq; }

# rustup cannot install the version of rust-toolchain.toml without the network. Its stable toolchain is used then; cargo
# refuses one that is too old for Cargo.toml.
need_cargo() {
  command -v cargo >/dev/null || die "cargo is missing: install Rust, https://rustup.rs"
  cargo --version >/dev/null && return
  if [ -n "${RUSTUP_TOOLCHAIN:-}" ] || ! RUSTUP_TOOLCHAIN=stable cargo --version >/dev/null 2>&1; then
    die "cargo does not run here: its message is above"
  fi
  export RUSTUP_TOOLCHAIN=stable
  say "      the version in rust-toolchain.toml is not installed: $(rustc --version) is used"
}

# Sets cargo_flags: libpq of the system, or libpq built from source (docs/decisions/0001-packaging.md).
need_libpq() {
  need_cargo
  command -v "${CC:-cc}" >/dev/null || die "a C compiler is missing: install gcc or clang (on Debian: build-essential)"
  if links_libpq || { apt_install libpq-dev && links_libpq; }; then return; fi
  if compiles '#include <openssl/ssl.h>' -fsyntax-only; then
    cargo_flags=(--features bundled-libpq)
  else
    cargo_flags=(--features bundled-libpq-without-tls)
  fi
  say "      libpq is not on this machine: built from source (${cargo_flags[1]})"
}

cargo_with() { cargo "$1" ${cargo_flags[@]+"${cargo_flags[@]}"} "${@:2}"; }

# build [arguments of cargo]: builds the binary, or what the arguments name, with a line of progress on a terminal.
build() {
  local since shown='' code=0 begins
  since=$(clock)
  begins=$(($(wc -c <"$cargo_log") + 1))
  need_libpq
  set -m
  [ $# -gt 0 ] || set -- build --bin tarsy
  CARGO_TERM_PROGRESS_WHEN=always CARGO_TERM_PROGRESS_WIDTH=100 cargo_with "$1" --locked "${@:2}" >>"$cargo_log" 2>&1 </dev/null &
  front=$!
  set +m
  while [ -n "$(born "$front")" ]; do
    shown=$(tail -c "+$begins" "$cargo_log" | tr '\r' '\n' | sed -n 's/.*\] \([0-9]*\)\/\([0-9]*\).*/\1 of \2/p' | tail -1)
    if [ -t 3 ] && [ -n "$shown" ]; then
      printf '\r\033[K  …   %-19s  %s' build "$shown crates; only the first time" >&3
    fi
    sleep 0.3
  done
  wait "$front" || code=$?
  front=
  if [ "$code" != 0 ]; then
    tail -c "+$begins" "$cargo_log" | tr '\r' '\n' | grep -v '\] [0-9]*/[0-9]*' | tail -40 >&2
    die "the build fails: the output of cargo is above and in $cargo_log"
  fi
  if [ -n "$shown" ]; then shown="${shown##* } crates"; fi
  ok build "${shown:-nothing to do}" "$since"
}

# xtask <program> [arguments]: a program of xtask/. Its own target folder keeps it from waiting for another build.
xtask() {
  need_cargo
  [ -d "$target/xtask" ] || say "      the programs of ./dev are compiled once: some seconds"
  cargo run --quiet --locked --package xtask --target-dir "$target/xtask" -- "$@"
}
