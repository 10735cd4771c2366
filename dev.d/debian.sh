# shellcheck shell=bash
# Prometheus, PgBouncer and Chromium: packages of Debian, which are only unpacked, below .dev/tools.

# Sets prometheus, promtool and alertmanager. If one is empty, the tests of these programs are skipped, and `./dev test`
# ends with a message about that. Debian's packages start services when they are installed, so they are only unpacked,
# below .dev/tools.
need_prometheus() {
  local dir=$tools/prometheus
  prometheus=$(command -v prometheus || true)
  promtool=$(command -v promtool || true)
  alertmanager=$(command -v alertmanager || command -v prometheus-alertmanager || true)
  if [ -z "$prometheus" ] || [ -z "$promtool" ] || [ -z "$alertmanager" ]; then
    if [ -e "$dir/complete" ] || unpack_prometheus "$dir"; then
      prometheus=${prometheus:-$dir/usr/bin/prometheus}
      promtool=${promtool:-$dir/usr/bin/promtool}
      alertmanager=${alertmanager:-$dir/alertmanager}
    fi
  fi
}

# unpack_prometheus <directory>: if that fails, adds the tests to `skipped`.
unpack_prometheus() {
  local dir=$1 resources=/usr/share/prometheus/alertmanager here
  if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
    skipped+=("the tests with Prometheus and Alertmanager (prometheus, promtool or alertmanager is not on PATH, and they can be fetched on Debian only)")
    return 1
  fi
  say "      prometheus and alertmanager are not on this machine: unpacking Debian's packages into .dev/tools"
  rm -rf "$dir"
  mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial"
  if ! download_prometheus "$dir" >"$dir/log" 2>&1; then
    skipped+=("the tests with Prometheus and Alertmanager (Debian's packages prometheus and prometheus-alertmanager cannot be fetched: $(tail -1 "$dir/log"))")
    return 1
  fi
  # Debian's alertmanager reads its templates from a fixed path, which becomes the directory in which it is started.
  here=$(printf "%${#resources}s" '' | sed 's/  /.\//g; s/ /./')
  LC_ALL=C sed -i "s#$resources#$here#g" "$dir/usr/bin/prometheus-alertmanager"
  printf '#!/bin/sh\ncd "%s" && exec "%s" "$@"\n' "$dir$resources" "$dir/usr/bin/prometheus-alertmanager" >"$dir/alertmanager"
  chmod 755 "$dir/alertmanager"
  if ! "$dir/alertmanager" --version >"$dir/log" 2>&1 || ! "$dir/usr/bin/promtool" --version >"$dir/log" 2>&1; then
    skipped+=("the tests with Prometheus and Alertmanager (Debian's packages do not run here: $(tail -1 "$dir/log"))")
    return 1
  fi
  rm -rf "$dir"/*.deb "$dir/apt"
  : >"$dir/complete"
}

# Works without root as well: if the system has no package lists, they are stored in this directory.
download_prometheus() {
  local dir=$1 package wanted=(prometheus prometheus-alertmanager)
  local own=(-o "Dir::State=$dir/apt" -o Dir::State::status=/var/lib/dpkg/status -o "Dir::Cache=$dir/apt/cache")
  (cd "$dir" && apt-get download "${wanted[@]}") ||
    (cd "$dir" && apt-get "${own[@]}" update && apt-get "${own[@]}" download "${wanted[@]}") || return 1
  # Later versions of Debian have promtool in a separate package.
  for package in "$dir"/*.deb; do dpkg-deb -x "$package" "$dir" || return 1; done
  [ -x "$dir/usr/bin/promtool" ] && return
  (cd "$dir" && { apt-get download promtool || apt-get "${own[@]}" download promtool; }) || return 1
  for package in "$dir"/promtool*.deb; do dpkg-deb -x "$package" "$dir" || return 1; done
}

# Sets pgbouncer. If it is empty, the tests with it are skipped. As with Prometheus, Debian's package is only unpacked.
need_pgbouncer() {
  local dir=$tools/pgbouncer
  pgbouncer=$(command -v pgbouncer || true)
  if [ -n "$pgbouncer" ]; then return; fi
  if [ ! -e "$dir/complete" ]; then
    if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
      skipped+=("the tests with PgBouncer (it is not on PATH, and can be fetched on Debian only)")
      return
    fi
    say "      pgbouncer is not on this machine: unpacking Debian's package into .dev/tools"
    rm -rf "$dir"
    mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial"
    if ! download_pgbouncer "$dir" >"$dir/log" 2>&1; then
      skipped+=("the tests with PgBouncer (Debian's package cannot be fetched or does not run here: $(tail -1 "$dir/log"))")
      return
    fi
    rm -rf "$dir"/*.deb "$dir/apt"
    : >"$dir/complete"
  fi
  pgbouncer=$dir/pgbouncer
}

# Fetches the package with those libraries that a machine rarely has.
download_pgbouncer() {
  local dir=$1 package libraries
  local own=(-o "Dir::State=$dir/apt" -o Dir::State::status=/var/lib/dpkg/status -o "Dir::Cache=$dir/apt/cache")
  (cd "$dir" && apt-get download pgbouncer) ||
    (cd "$dir" && apt-get "${own[@]}" update && apt-get "${own[@]}" download pgbouncer) || return 1
  libraries=$(dpkg-deb -f "$dir"/pgbouncer*.deb Depends | tr ',|' '[\n*]' | sed -n 's/^ *\(libc-ares[^ ]*\|libevent[^ ]*\).*/\1/p')
  # shellcheck disable=SC2086  # one word for each library
  (cd "$dir" && { apt-get download $libraries || apt-get "${own[@]}" download $libraries; }) || return 1
  for package in "$dir"/*.deb; do dpkg-deb -x "$package" "$dir" || return 1; done
  # shellcheck disable=SC2016  # the shell that reads this expands it
  printf '#!/bin/sh\nLD_LIBRARY_PATH=$(echo %q/usr/lib/*-linux-*) exec %q "$@"\n' "$dir" "$dir/usr/sbin/pgbouncer" >"$dir/pgbouncer"
  chmod 755 "$dir/pgbouncer"
  "$dir/pgbouncer" --version
}

# Sets chromium and axe (a script that checks pages), for the tests of the web interface in a browser. As with PgBouncer,
# Debian's packages are only unpacked, with the libraries that this machine does not have.
need_browser() {
  local dir=$tools/chromium
  axe=
  chromium=$(command -v chromium || true)
  if [ -z "$chromium" ] && [ ! -e "$dir/complete" ]; then
    if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
      skipped+=("the tests of the web interface in Chromium (it is not on PATH, and can be fetched on Debian only)")
      return
    fi
    say "      chromium is not on this machine: unpacking Debian's packages into .dev/tools"
    rm -rf "$dir"
    mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial"
    if ! download_chromium "$dir" >"$dir/log" 2>&1; then
      skipped+=("the tests of the web interface in Chromium (Debian's packages cannot be fetched or do not run here: $(tail -1 "$dir/log"))")
      return
    fi
    rm -rf "$dir"/*.deb "$dir/apt"
    : >"$dir/complete"
  fi
  chromium=${chromium:-$dir/chromium}
  node_with "web-node-$(cksum <tests/web/package-lock.json | cut -d ' ' -f 1)" 'the rules of axe-core on the web interface' tests/web
  axe=${found:+$found/axe-core/axe.min.js}
}

download_chromium() {
  local dir=$1 package missing
  local own=(-o "Dir::State=$dir/apt" -o Dir::State::status=/var/lib/dpkg/status -o "Dir::Cache=$dir/apt/cache")
  local wanted=(-qq --print-uris --no-install-recommends install chromium)
  if missing=$(cd "$dir" && apt-get "${wanted[@]}") && [ -n "$missing" ]; then
    own=()
  else
    apt-get "${own[@]}" update && missing=$(apt-get "${own[@]}" "${wanted[@]}") || return 1
  fi
  # Each line has the address, then the name of the file: package_version_architecture.deb.
  missing=$(awk '{ print $2 }' <<<"$missing" | sed 's/_.*//')
  # shellcheck disable=SC2086  # one word for each package
  (cd "$dir" && apt-get ${own[@]+"${own[@]}"} download $missing) || return 1
  for package in "$dir"/*.deb; do dpkg-deb -x "$package" "$dir" || return 1; done
  # shellcheck disable=SC2016  # the shell that reads this expands it
  printf '#!/bin/sh\nLD_LIBRARY_PATH=$(echo %q/usr/lib/*-linux-*):$(echo %q/usr/lib/*-linux-*/pulseaudio) exec %q "$@"\n' \
    "$dir" "$dir" "$dir/usr/lib/chromium/chromium" >"$dir/chromium"
  chmod 755 "$dir/chromium"
  "$dir/chromium" --version
}
