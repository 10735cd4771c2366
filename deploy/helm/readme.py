#!/usr/bin/env python3
"""Writes the table of values in deploy/helm/tarsy/README.md from the comments of values.yaml; --check only compares.

It needs Python's own library only. A comment above a key is its description. A key without a comment belongs to the
described key above it, unless it has a value of its own.
"""

import pathlib
import re
import sys

CHART = pathlib.Path(__file__).resolve().parent / "tarsy"
BEGIN, END = "<!-- values: begin -->\n", "<!-- values: end -->\n"
KEY = re.compile(r"^( *)([A-Za-z][A-Za-z0-9]*):(?: (.*))?$")


def rows(text):
    """(key, default, description) of each leaf, and of each map with a description."""
    path, comments, found = [], [], []
    lines = text.splitlines()
    # What stands before the first empty line describes the file.
    for index, line in enumerate(lines[lines.index("") :], lines.index("")):
        if line.lstrip().startswith("#"):
            comments.append(line.lstrip()[1:].strip())
            continue
        match = KEY.match(line)
        if not match:
            comments = []
            continue
        indent, key, value = len(match[1]) // 2, match[2], match[3]
        path = path[:indent] + [key]
        description = " ".join(comments)
        comments = []
        if value is None and not description:
            continue
        inner = next((l for l in lines[index + 1 :] if l.strip() and not l.lstrip().startswith("#")), "")
        has_keys = value is None and len(inner) - len(inner.lstrip()) > len(match[1])
        found.append((".".join(path), "" if has_keys else value or "", description))
    return found


def escaped(text):
    return text.replace("|", "\\|")


def table(text):
    lines = ["| value | default | meaning |", "|---|---|---|"]
    for key, default, description in rows(text):
        shown = f"`{escaped(default)}`" if default else ""
        lines.append(f"| `{key}` | {shown} | {escaped(description)} |")
    return "\n".join(lines) + "\n"


def main():
    readme = CHART / "README.md"
    old = readme.read_text(encoding="utf-8")
    before, rest = old.split(BEGIN)
    after = rest.split(END)[1]
    new = before + BEGIN + table((CHART / "values.yaml").read_text(encoding="utf-8")) + END + after
    if "--check" in sys.argv:
        if new != old:
            sys.exit("README.md of the chart differs from values.yaml: run deploy/helm/readme.py")
    else:
        readme.write_text(new, encoding="utf-8")


main()
