# shellcheck shell=bash
# ./dev kube: a control plane of Kubernetes, and the tests of the chart on it.

kube() {
  [ $# -le 1 ] || usage
  [ "$(uname)" = Linux ] || die "each pod gets an address of its own in 127.0.0.0/8, which works on Linux only"
  begin "kube.$$"
  find_control_plane || build_control_plane
  fetch_crds
  need_oauth2_proxy
  export TARSY_TEST_OAUTH2_PROXY=$oauth2_proxy
  foreground "$root/dev" test --test it "chart::cluster::${1:-}" -- --nocapture
}

# Sets ETCD_BIN, KUBE_APISERVER_BIN and KUBE_CONTROLLER_MANAGER_BIN, the variables of envtest, unless they are set: to the
# programs that `./dev kube` has built. TARSY_TEST_KUBE_CRDS is a folder with the resources of KEDA, of the Prometheus
# operator, and of the Gateway API.
find_control_plane() {
  local dir
  dir=$(control_plane_dir)
  if [ -d "$dir/crds-2" ]; then export TARSY_TEST_KUBE_CRDS=${TARSY_TEST_KUBE_CRDS:-$dir/crds-2}; fi
  if has_control_plane; then return; fi
  [ -x "$dir/control-plane" ] || return 1
  export ETCD_BIN=$dir/etcd KUBE_APISERVER_BIN=$dir/kube-apiserver
  export KUBE_CONTROLLER_MANAGER_BIN=$dir/kube-controller-manager
}

has_control_plane() { [ -n "${ETCD_BIN:-}" ] && [ -n "${KUBE_APISERVER_BIN:-}" ] && [ -n "${KUBE_CONTROLLER_MANAGER_BIN:-}" ]; }
control_plane_dir() { echo "$tools/control-plane-$(cat tests/chart/control_plane/* | cksum | cut -d ' ' -f 1)"; }

# Builds the programs of tests/chart/control_plane.
build_control_plane() {
  local dir version minor part since
  dir=$(control_plane_dir)
  command -v go >/dev/null || die "Go is missing: install Go 1.26 or later, or set KUBE_APISERVER_BIN, ETCD_BIN and KUBE_CONTROLLER_MANAGER_BIN"
  since=$(clock)
  version=$(sed -n 's/.*k8s.io\/kubernetes \(v[0-9.]*\).*/\1/p' tests/chart/control_plane/go.mod)
  minor=${version#v1.}
  say "      Kubernetes $version is compiled once: about ten minutes on two cores"
  rm -rf "${dir%-*}"-*
  mkdir -p "$dir"
  part=k8s.io/component-base/version
  CGO_ENABLED=0 GOFLAGS=-mod=readonly foreground nice go build -C tests/chart/control_plane -trimpath \
    -ldflags "-s -w -X $part.gitVersion=$version -X $part.gitMajor=1 -X $part.gitMinor=${minor%%.*}" \
    -o "$dir/control-plane" . >&2 || die "Go cannot build the control plane: its message is above"
  for part in etcd kube-apiserver kube-controller-manager; do ln -sf control-plane "$dir/$part"; done
  find_control_plane
  ok "kubernetes $version" "${dir#"$root/"}" "$since"
}

# copy_crds <folder> <module of Go> <files of it>: modules contain the definitions that their projects publish.
fetch_crds() {
  local dir part
  dir=$(control_plane_dir)
  # The name changes with the list below.
  [ ! -d "$dir/crds-2" ] || return 0
  command -v go >/dev/null || return 0
  part=$dir/crds.$$
  mkdir -p "$part"
  copy_crds "$part" github.com/kedacore/keda/v2@v2.21.0 config/crd/bases/keda.sh_{scaledobjects,triggerauthentications}.yaml
  copy_crds "$part" github.com/prometheus-operator/prometheus-operator@v0.85.0 \
    example/prometheus-operator-crd/monitoring.coreos.com_{podmonitors,servicemonitors,prometheusrules}.yaml
  copy_crds "$part" sigs.k8s.io/gateway-api@v1.4.1 config/crd/standard/gateway.networking.k8s.io_httproutes.yaml
  mv "$part" "$dir/crds-2"
  find_control_plane
}

# copy_crds <folder> <module> <file in it>...
copy_crds() {
  local from file
  from=$(go mod download -json "$2" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
  for file in "${@:3}"; do cp "$from/$file" "$1/"; done
  chmod u+w "$1"/*
}

# Fetches oauth2-proxy, which the test of single sign-on runs in front of the pages.
need_oauth2_proxy() {
  oauth2_proxy=$(command -v oauth2-proxy) && return
  oauth2_proxy=$tools/oauth2-proxy-7.15.6/oauth2-proxy
  [ -x "$oauth2_proxy" ] && return
  if ! command -v go >/dev/null; then
    skipped+=("the test with oauth2-proxy (neither oauth2-proxy nor Go is on PATH)")
    oauth2_proxy=
  elif ! GOBIN=${oauth2_proxy%/*} foreground nice go install -ldflags='-s -w' github.com/oauth2-proxy/oauth2-proxy/v7@v7.15.6 >"$run/oauth2-proxy.log" 2>&1; then
    skipped+=("the test with oauth2-proxy (Go cannot install it: $(tail -1 "$run/oauth2-proxy.log"))")
    oauth2_proxy=
  fi
}
