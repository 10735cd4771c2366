# shellcheck shell=bash
# Programs that tests need beside the servers. Without one its tests are skipped, with the reason.

# The programs that the tests of `it` need beside Postgres. Sets their variables; a missing one is named at the end.
need_test_tools() {
  need_older_nats
  need_python
  need_llm_python
  need_litellm_python
  need_mcp_servers
  need_prometheus
  need_chart_tools
  # Only `./dev kube` sets their variables, even where they are built: these tests need minutes.
  has_control_plane || skipped+=("the tests of the chart on a control plane of Kubernetes (./dev kube runs them)")
  need_pgbouncer
  need_browser
  export TARSY_TEST_NATS_SERVER_OLDER=$older_nats TARSY_TEST_PYTHON=$python TARSY_TEST_LLM_PYTHON=$llm_python
  export TARSY_TEST_LITELLM_PYTHON=$litellm_python TARSY_TEST_MCP_PYTHON=$mcp_python TARSY_TEST_MCP_NODE=$mcp_node
  export TARSY_TEST_CHART_PYTHON=$chart_python TARSY_TEST_CHART_NODE=$chart_node TARSY_TEST_KUBE_SCORE=$kube_score
  export TARSY_TEST_CHROMIUM=$chromium TARSY_TEST_AXE=$axe TARSY_TEST_PGBOUNCER=$pgbouncer
  export TARSY_TEST_PROMETHEUS=$prometheus TARSY_TEST_PROMTOOL=$promtool TARSY_TEST_ALERTMANAGER=$alertmanager
}

# Sets python: an interpreter that can `import nats`, for the tests of clients in another language.
need_python() {
  python_with nats-py-2.16.0 'the tests of python::' nats.js nats-py==2.16.0
  python=$found
}

# Sets llm_python: an interpreter with gRPC and the official SDKs of providers, for the differential tests.
need_llm_python() {
  local file=tests/llm/requirements.txt
  python_with "llm-python-$(cksum <$file | cut -d ' ' -f 1)" 'the differential tests of the LLM service' \
    grpc_tools,google.genai,openai,anthropic -r "$file"
  llm_python=$found
}

# Sets litellm_python: an interpreter with LiteLLM's proxy, an OpenAI-compatible server that others wrote.
need_litellm_python() {
  local file=tests/llm/litellm.txt
  # These are the modules with compiled parts; LiteLLM itself needs seconds to be imported.
  python_with "litellm-$(cksum <$file | cut -d ' ' -f 1)" 'the tests with LiteLLM' uvicorn,orjson,tiktoken -r "$file"
  litellm_python=$found
}

# Sets mcp_node (a folder with programs) and mcp_python: MCP servers that others wrote, from npm and PyPI.
need_mcp_servers() {
  local file=tests/mcp/requirements.txt
  python_with "mcp-python-$(cksum <$file | cut -d ' ' -f 1)" 'the tests with mcp-server-time and mcp-server-git' \
    mcp_server_time,mcp_server_git -r "$file"
  mcp_python=$found
  node_with "mcp-node-$(cksum <tests/mcp/package-lock.json | cut -d ' ' -f 1)" \
    'the tests with server-everything, server-filesystem and kubernetes-mcp-server' tests/mcp kubernetes-mcp-server
  mcp_node=$found
  if ! command -v git >/dev/null; then skipped+=("the tests with mcp-server-git (there is no git)"); fi
  if ! command -v python3 >/dev/null; then
    skipped+=("the tests with kubernetes-mcp-server (there is no python3 for the fake cluster)")
  fi
}

# Sets chart_python (the library of Helm, the schemas of Kubernetes), chart_node (a folder with the types of KEDA and of
# the Prometheus operator) and kube_score (a policy checker), for the tests of the chart.
need_chart_tools() {
  local file=tests/chart/requirements.txt score=github.com/zegl/kube-score/cmd/kube-score@v1.20.0
  python_with "chart-python-$(cksum <$file | cut -d ' ' -f 1)" 'the tests of the Helm chart' helm_python,kubernetes_validate -r "$file"
  chart_python=$found
  node_with "chart-node-$(cksum <tests/chart/package-lock.json | cut -d ' ' -f 1)" \
    'the test with the types of KEDA and the Prometheus operator' tests/chart
  chart_node=$found
  if kube_score=$(command -v kube-score); then return; fi
  kube_score=$tools/kube-score-1.20.0/kube-score
  [ -x "$kube_score" ] && return
  if ! command -v go >/dev/null; then
    skipped+=("the test with kube-score (neither kube-score nor Go is on PATH)")
    kube_score=
  # Without inlining and symbols it is built in half the time.
  elif ! GOBIN=${kube_score%/*} foreground go install -gcflags=all=-l -ldflags='-s -w' "$score" >"$run/kube-score.log" 2>&1; then
    skipped+=("the test with kube-score (Go cannot install it: $(tail -1 "$run/kube-score.log"))")
    kube_score=
  fi
}
