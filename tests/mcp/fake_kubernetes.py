"""The API of a Kubernetes cluster, as far as an MCP server reads it, over HTTP without authentication.

fake_kubernetes.py <cluster.json> <file of requests>

`resources` of the cluster lists the kinds: groupVersion, kind, plural, namespaced and the items. `logs` has, by
namespace/pod/container, the lines of the running container (`current`) and of the one before (`previous`).

The API answers discovery, GET and lists (also of all namespaces, with field selectors and label selectors of the form
a=b, as objects or as a table), logs of pods, and reviews of access, which allow everything: a client that does not ask
for Secrets is not stopped here. Anything else is 404 or 405. Each request is a line `METHOD path` of the file of
requests. A line `ready <address>` says where it listens.
"""

import http.server
import json
import pathlib
import sys
import threading
import urllib.parse

TABLE = "as=Table"


def status(code, reason, message):
    return code, {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": reason, "code": code,
    }  # fmt: skip


class Cluster:
    def __init__(self, file):
        data = json.loads(pathlib.Path(file).read_text())
        self.resources = data["resources"]
        self.logs = data["logs"]
        for resource in self.resources:
            for item in resource["items"]:
                item.update(apiVersion=resource["groupVersion"], kind=resource["kind"])

    def discovery(self, path):
        """The answer to a request for groups, versions and kinds; None for any other path."""
        groups = sorted({resource["groupVersion"] for resource in self.resources})
        if path == "/version":
            return {"major": "1", "minor": "34", "gitVersion": "v1.34.2", "platform": "linux/amd64"}
        if path == "/api":
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        if path == "/apis":
            named = [group for group in groups if "/" in group]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [self.group(group) for group in named]}
        prefix, _, version = path.strip("/").partition("/")
        if version in groups and prefix == ("apis" if "/" in version else "api"):
            kinds = [self.kind(resource) for resource in self.resources if resource["groupVersion"] == version]
            if version == "v1":
                kinds.append({"name": "pods/log", "singularName": "", "namespaced": True, "kind": "Pod", "verbs": ["get"]})
            return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": kinds}
        return None

    @staticmethod
    def group(group_version):
        name, version = group_version.split("/")
        versions = [{"groupVersion": group_version, "version": version}]
        return {"name": name, "versions": versions, "preferredVersion": versions[0]}

    @staticmethod
    def kind(resource):
        kind = resource["kind"]
        verbs = ["get", "list"]
        names = {"name": resource["plural"], "singularName": kind.lower(), "kind": kind}
        return {**names, "namespaced": resource["namespaced"], "verbs": verbs}

    def find(self, path):
        """The resource, namespace, name and subresource of a path; None if no resource has it."""
        parts = path.strip("/").split("/")
        version, rest = (parts[1], parts[2:]) if parts[0] == "api" else ("/".join(parts[1:3]), parts[3:])
        namespace = None
        if len(rest) > 2 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        for resource in self.resources:
            if rest and (resource["groupVersion"], resource["plural"]) == (version, rest[0]):
                name, subresource = (rest[1:] + [None, None])[:2]
                return resource, namespace, name, subresource
        return None

    def answer(self, path, query, accept):
        found = self.discovery(path)
        if found is not None:
            return 200, found
        found = self.find(path)
        if found is None:
            return status(404, "NotFound", "the server could not find the requested resource")
        resource, namespace, name, subresource = found
        items = [item for item in resource["items"] if namespace in (None, item["metadata"].get("namespace"))]
        if name is None:
            return self.listed(resource, [item for item in items if selected(item, query)], accept)
        item = next((item for item in items if item["metadata"]["name"] == name), None)
        if item is None:
            return status(404, "NotFound", f'{resource["plural"]} "{name}" not found')
        if subresource == "log":
            return self.log(item, query)
        return (200, item) if subresource is None else status(404, "NotFound", "no such subresource")

    @staticmethod
    def listed(resource, items, accept):
        if TABLE in accept:
            return 200, table(resource, items)
        kind = resource["kind"] + "List"
        return 200, {"kind": kind, "apiVersion": resource["groupVersion"], "metadata": {}, "items": items}

    def log(self, pod, query):
        metadata = pod["metadata"]
        container = query.get("container", pod["spec"]["containers"][0]["name"])
        which = "previous" if query.get("previous") == "true" else "current"
        lines = self.logs.get(f'{metadata["namespace"]}/{metadata["name"]}/{container}', {}).get(which)
        if lines is None:
            return status(400, "BadRequest", f'{which} terminated container "{container}" not found')
        tail = int(query.get("tailLines", len(lines)))
        return 200, "\n".join(lines[-tail:]) + "\n"


def selected(item, query):
    labels = item["metadata"].get("labels", {})
    wanted = [part.split("=", 1) for part in query.get("labelSelector", "").split(",") if part]
    if any(labels.get(key.rstrip("=")) != value.lstrip("=") for key, value in wanted):
        return False
    fields = [part.split("=", 1) for part in query.get("fieldSelector", "").split(",") if part]
    return all(str(field(item, key.rstrip("=!"))) == value.lstrip("=") for key, value in fields)


def field(item, path):
    for part in path.split("."):
        item = item.get(part, {}) if isinstance(item, dict) else {}
    return item or ""


def table(resource, items):
    pods = resource["kind"] == "Pod"
    names = ["Name", "Ready", "Status", "Restarts", "Age"] if pods else ["Name", "Age"]
    columns = [{"name": name, "type": "string", "format": "", "description": name, "priority": 0} for name in names]
    rows = [{"cells": pod_cells(item) if pods else cells(item), "object": item} for item in items]
    return {
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "columnDefinitions": columns, "rows": rows,
    }  # fmt: skip


def cells(item):
    return [item["metadata"]["name"], "12d"]


def pod_cells(item):
    containers = item["status"].get("containerStatuses", [])
    ready = sum(container["ready"] for container in containers)
    restarts = str(sum(container["restartCount"] for container in containers))
    waiting = [container["state"].get("waiting", {}).get("reason") for container in containers]
    shown = next((reason for reason in waiting if reason), item["status"]["phase"])
    return [item["metadata"]["name"], f"{ready}/{len(containers)}", shown, restarts, "3h8m"]


def handler(cluster, requests):
    lock = threading.Lock()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def noted(self):
            with lock, open(requests, "a", encoding="utf-8") as file:
                file.write(f"{self.command} {self.path}\n")

        def do_GET(self):
            self.noted()
            url = urllib.parse.urlsplit(self.path)
            query = dict(urllib.parse.parse_qsl(url.query))
            self.reply(*cluster.answer(url.path, query, self.headers.get("Accept", "")))

        def do_POST(self):
            self.noted()
            review = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
            if "accessreview" not in self.path:
                return self.reply(*status(405, "MethodNotAllowed", "the cluster is read-only"))
            review["status"] = {"allowed": True}
            self.reply(201, review)

        def do_change(self):
            self.noted()
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.reply(*status(405, "MethodNotAllowed", "the cluster is read-only"))

        do_PUT = do_PATCH = do_DELETE = do_change

        def reply(self, code, body):
            kind = "text/plain" if isinstance(body, str) else "application/json"
            data = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    return Handler


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler(Cluster(sys.argv[1]), sys.argv[2]))
    server.daemon_threads = True
    print(f"ready 127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
