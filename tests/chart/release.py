"""Installs, upgrades, tests and removes a release in a cluster with the library of Helm.

Standard input: a JSON object with `config` (options of a connection), `name`, `chart`, `action`, `timeout` in seconds, and
`case` as in helm.py for `install`, `upgrade` and `dry-run`, or `version` for `rollback`.
Standard output: {"result": …} or {"fault": text}.
"""

import json
import sys

import helm_python

from helm import values_of


def done(cluster, request):
    name, chart, timeout = request["name"], request["chart"], request["timeout"]
    action = request["action"]
    values = values_of(chart, request["case"]) if "case" in request else None
    waited = {"timeout": timeout, "wait": "watcher"}
    if action == "install":
        return cluster.install(chart, name, values, **waited)
    if action == "upgrade":
        return cluster.upgrade(chart, name, values, **waited)
    if action == "dry-run":
        return cluster.install(chart, name, values, dry_run="server")
    if action == "rollback":
        return cluster.rollback(name, version=request["version"], **waited)
    if action == "uninstall":
        return cluster.uninstall(name, **waited)
    if action == "history":
        return cluster.history(name)
    return cluster.test(name, timeout=timeout)


def main():
    request = json.load(sys.stdin)
    try:
        with helm_python.Config(**request["config"]) as cluster:
            answer = {"result": done(cluster, request)}
    except helm_python.HelmError as error:
        answer = {"fault": str(error)}
    json.dump(answer, sys.stdout)


main()
