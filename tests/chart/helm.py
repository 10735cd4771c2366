"""Renders, lints and validates a chart with the library of Helm, without a cluster.

Each line of standard input is a request, whose answer is a line of standard output: one process answers all requests,
because the libraries take longer to load than most answers take. A request is a JSON object with `chart` (a path) and one of
- `render`: an array of cases. Output for each: {"objects": {template: [object, …]}, "notes": text} or {"fault": text}.
- `lint`: an array of cases. Output for each: an array of messages; a hint about an icon is none.
- `read`: an array of YAML files. Output: their content.
- `validate`: an array of objects, `versions`: an array such as ["1.34"]. Output: an array of faults, null for a valid one.
A case has `files`, values files in the chart, and `set`, an object with values that replace those of the files.
An answer is a JSON array.
"""

import functools
import json
import os
import sys

import helm_python
import kubernetes_validate
import kubernetes_validate.utils
import yaml

KUBE_VERSION = "v1.36.0"

# The library would read a megabyte of definitions again for each object.
kubernetes_validate.utils.schema_contents = functools.lru_cache(maxsize=None)(kubernetes_validate.utils.schema_contents)


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """Reads YAML 1.1 and refuses a key that stands twice, which a cluster would drop silently."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = {key for key in keys if keys.count(key) > 1}
        if twice:
            raise ValueError(f"{sorted(twice)} twice, {node.start_mark}")
        if not all(isinstance(key, str) for key in keys):
            raise ValueError(f"a key is no text: {keys}, {node.start_mark}")
        return super().construct_mapping(node, deep)


def merged(values, further):
    if not (isinstance(values, dict) and isinstance(further, dict)):
        return further
    return values | {key: merged(values.get(key), value) for key, value in further.items()}


def read(path):
    with open(path, encoding="utf-8") as file:
        return yaml.load(file, Loader) or {}


def values_of(chart, case):
    values = {}
    for file in case.get("files", []):
        values = merged(values, read(os.path.join(chart, file)))
    return merged(values, case.get("set", {}))


def rendered(chart, values):
    try:
        files = chart.render(values=values, name="release", namespace="space")
    except helm_python.HelmError as error:
        return {"fault": str(error)}
    objects, notes = {}, ""
    for path, text in files.items():
        if path.endswith("NOTES.txt"):
            notes = text
            continue
        found = [object for object in yaml.load_all(text, Loader) if object]
        if found:
            objects[path] = found
    return {"objects": objects, "notes": notes}


def linted(path, values):
    report = helm_python.lint(path, values, strict=True, kube_version=KUBE_VERSION)
    messages = [f"{message['path']}: {message['error']}" for message in report["messages"]]
    return [message for message in messages if "icon is recommended" not in message] + list(report["errors"])


def validated(object, version):
    try:
        kubernetes_validate.validate(object, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return f"{version}: {'.'.join(map(str, error.path))}: {error.message}"
    except kubernetes_validate.SchemaNotFoundError as error:
        return f"{version}: no schema: {error}"
    return None


def answered(request):
    path = request.get("chart", "")
    if "render" in request:
        chart = helm_python.Chart.load(path)
        answer = [rendered(chart, values_of(path, case)) for case in request["render"]]
    elif "lint" in request:
        answer = [linted(path, values_of(path, case)) for case in request["lint"]]
    elif "read" in request:
        answer = [read(os.path.join(path, file)) for file in request["read"]]
    else:
        answer = []
        for object in request["validate"]:
            faults = (validated(object, version) for version in request["versions"])
            answer.append(next((fault for fault in faults if fault), None))
    return answer


def main():
    for line in sys.stdin:
        print(json.dumps(answered(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
