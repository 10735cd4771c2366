# shellcheck shell=bash
# ./dev image.

image() {
  local engine version name layout=$target/image flags=() since
  since=$(clock)
  case ${1:-} in --check) [ $# -eq 1 ] || usage ;; '') ;; *) usage ;; esac
  begin "image.$$"
  find_engine
  version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
  name=${IMAGE:-tarsy:$version}
  [ -z "${BUILD_IMAGE:-}" ] || flags+=(--build-arg "BUILD_IMAGE=$BUILD_IMAGE")
  [ -z "${RUNTIME_IMAGE:-}" ] || flags+=(--build-arg "RUNTIME_IMAGE=$RUNTIME_IMAGE")
  flags+=(--build-arg "VERSION=$version" --build-arg "REVISION=$(git rev-parse HEAD 2>/dev/null || true)")
  # shellcheck disable=SC2206  # words
  flags+=(${IMAGE_FLAGS:-} --file deploy/image/Dockerfile --tag "$name" .)
  if [ "$engine" = buildah ]; then
    foreground buildah bud --layers --timestamp 0 "${flags[@]}"
    # A folder in OCI layout, which skopeo copies to any registry and runc can run.
    rm -rf "$layout"
    mkdir -p "$target"
    foreground buildah push --quiet "$name" "oci:$layout:$version"
    ok image "$name, also in $layout" "$since"
    name=oci:$layout:$version
  else
    foreground "$engine" build "${flags[@]}"
    ok image "$name" "$since"
  fi
  [ "${1:-}" = --check ] || return 0
  TARSY_TEST_IMAGE=$name foreground "$root/dev" test --test it image:: -- --nocapture --test-threads 1
}

# Sets engine: a program that builds images and works here.
find_engine() {
  for engine in docker podman; do
    if command -v "$engine" >/dev/null && "$engine" info >/dev/null 2>&1; then return; fi
  done
  engine=buildah
  command -v buildah >/dev/null || die "neither Docker nor Podman nor Buildah works here: install one of them"
}
