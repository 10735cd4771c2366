# shellcheck shell=bash
# Usage, and what is proposed for an unknown word.

help() {
  cat <<'END'
usage: ./dev demo [drill] [args]  investigate a recorded incident live, with kill -9 of its owner in the middle; --no-kill
                                  leaves that out, --keep leaves the system running, with the result in it, until
                                  ./dev down, --list names the drills, a path is a drill of your own, `past` is an incident
                                  that comes twice, more arguments go to `tarsy drill`:
                                  --provider gemini|openai|anthropic|xai|ollama[:model] asks a real model with your key
                                  or your server (--base-url) instead of replaying a recording
       ./dev test [options] [args]
                                  run every test, the long ones in short; arguments go to `cargo test`. --changed [ref]
                                  runs what the change since a commit can break (HEAD, or the one before it if nothing is
                                  changed), --fail-fast stops at the first failure, --times prints where the time goes
       ./dev prove [part...]      run the long tests whole, and every other command of this list: tests, chaos, upgrade,
                                  kube, bench, image, fuzz, mutants, advisories; hours. It names what cannot run here
       ./dev chaos [--minutes N | --approvals N] [--seed S]
                                  inject faults of every kind into a whole system for N minutes (10), then check every
                                  guarantee; the seed decides which faults and alerts. --approvals makes N sessions whose
                                  calls wait for people, and lets the database fail over without its last commits
       ./dev upgrade [git-ref]    upgrade and roll back a system whose workers are of an older commit: the newest tag, or
                                  the last commit with another schema
       ./dev bench [part...]      measure an investigation, the LLM service, and calls of tools over HTTP, or only these
                                  parts of an investigation: statements, throughput, alone, memory; --smoke only shows
                                  that the programs run
       ./dev kube [filter]        run the tests of the chart on a real control plane of Kubernetes, which is built the first time
                                  (needs Go 1.26, the network, 4 GB in the caches of Go, and ten minutes of two cores)
       ./dev check                formatting, lints, scripts, messages of commits, documentation, licences and sources of the
                                  dependencies
       ./dev image [--check]      build the image with Docker, Podman or Buildah; BUILD_IMAGE and RUNTIME_IMAGE replace its
                                  bases, IMAGE its name (tarsy:<version>), IMAGE_FLAGS has further flags of the build;
                                  --check runs it read-only, without privileges, and measures it
       ./dev advisories           compare the dependencies with the known advisories; needs the network, run it daily
       eval "$(./dev up)"         start everything in the background and set the variables of this shell; the tools have
                                  the recorded evidence of the drill oom-killed, ./dev up <drill> that of another one.
                                  --config FILE takes your own tarsy.yaml instead, for any alert; --provider P[:model]
                                  and --base-url URL a model without tools, as for `demo`
       ./dev down                 stop everything that `up` or `demo --keep` started and delete its data
       ./dev help                 print this
END
}

usage() {
  help >&2
  exit 2
}

# unknown <what> <word> <known words>...: ends this script, and proposes the known word that is nearest.
unknown() {
  local what=$1 word=$2
  shift 2
  # The nearest one within two insertions, removals and replacements of a letter.
  printf '%s\n' "$@" | awk -v what="$what" -v word="$word" '
    function least(a, b, c) { return a < b ? (a < c ? a : c) : (b < c ? b : c) }
    { for (i = 0; i <= length(word); i++) d[i, 0] = i
      for (j = 0; j <= length($0); j++) d[0, j] = j
      for (i = 1; i <= length(word); i++) for (j = 1; j <= length($0); j++)
        d[i, j] = least(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (substr(word, i, 1) != substr($0, j, 1)))
      if (d[length(word), length($0)] < (best == "" ? 3 : limit)) { best = $0; limit = d[length(word), length($0)] } }
    END { printf "./dev: unknown %s \"%s\"%s\n./dev help lists what there is\n", what, word, best == "" ? "" : "; did you mean " best "?" }' >&2
  exit 2
}
