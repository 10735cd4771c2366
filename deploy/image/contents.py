#!/usr/bin/env python3
"""Completes the list of components of the image, and collects the licences of everything in it.

usage: contents.py <CycloneDX JSON of cargo-cyclonedx> <folder of crates' sources> <SBOM to write> <notices to write>

cargo-cyclonedx knows crates only. The program also contains parts of Debian packages, linked statically, and the libpq
of the crate pq-src; the image has Debian's list of certificate authorities. The Dockerfile runs this script.
"""

import json
import pathlib
import re
import subprocess
import sys

# Packages of which parts are in the program or in the image.
PACKAGES = {
    "libssl-dev": "OpenSSL, linked statically",
    "libc6-dev": "glibc, linked statically",
    "ca-certificates": "the certificate authorities that are trusted",
}
LICENCE = re.compile(r"^(licen[cs]e|copying|copyright|notice|unlicense|authors)", re.IGNORECASE)
# Debian's texts of common licences, to which the files of its packages refer.
COMMON = pathlib.Path("/usr/share/common-licenses")

# The crate pq-src has the sources of libpq without the file COPYRIGHT of PostgreSQL.
POSTGRESQL = """PostgreSQL Database Management System
(also known as Postgres, formerly known as Postgres95)

Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group

Portions Copyright (c) 1994, The Regents of the University of California

Permission to use, copy, modify, and distribute this software and its documentation for any purpose, without fee, and
without a written agreement is hereby granted, provided that the above copyright notice and this paragraph and the
following two paragraphs appear in all copies.

IN NO EVENT SHALL THE UNIVERSITY OF CALIFORNIA BE LIABLE TO ANY PARTY FOR DIRECT, INDIRECT, SPECIAL, INCIDENTAL, OR
CONSEQUENTIAL DAMAGES, INCLUDING LOST PROFITS, ARISING OUT OF THE USE OF THIS SOFTWARE AND ITS DOCUMENTATION, EVEN IF
THE UNIVERSITY OF CALIFORNIA HAS BEEN ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.

THE UNIVERSITY OF CALIFORNIA SPECIFICALLY DISCLAIMS ANY WARRANTIES, INCLUDING, BUT NOT LIMITED TO, THE IMPLIED
WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE. THE SOFTWARE PROVIDED HEREUNDER IS ON AN "AS IS" BASIS, AND THE
UNIVERSITY OF CALIFORNIA HAS NO OBLIGATIONS TO PROVIDE MAINTENANCE, SUPPORT, UPDATES, ENHANCEMENTS, OR MODIFICATIONS."""


def debian_component(package, purpose):
    """A component of the SBOM for an installed package."""
    fields = "${Package}\t${Version}\t${Architecture}\t${source:Package}"
    shown = subprocess.run(["dpkg-query", "-W", "-f", fields, package], check=True, capture_output=True, text=True)
    name, version, architecture, source = shown.stdout.split("\t")
    purl = f"pkg:deb/debian/{name}@{version.replace('+', '%2B')}?arch={architecture}&upstream={source}"
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "description": purpose, "purl": purl}


def libpq_component(crates):
    """The libpq that the crate pq-src compiles; the version of the crate names it."""
    version = next(c["version"] for c in crates if c["name"] == "pq-src").partition("+libpq-")[2]
    purl = f"pkg:generic/postgresql@{version}"
    purpose = "libpq, linked statically"
    licences = [{"license": {"id": "PostgreSQL"}}]
    return {"type": "library", "bom-ref": purl, "name": "postgresql", "version": version, "description": purpose,
            "licenses": licences, "purl": purl}


def licence_files(folder):
    """The files with licences of a crate."""
    found = [file for file in folder.iterdir() if file.is_file() and file.suffix != ".rs"]
    return sorted(file for file in found if LICENCE.match(file.name))


def expression(component):
    """The licence that a component declares."""
    found = component.get("licenses") or [{}]
    return " AND ".join(l.get("expression") or l.get("license", {}).get("id") or l.get("license", {}).get("name", "")
                        for l in found) or "see the text"


def notices(crates, sources):
    """The text of every licence once, below the components that have it."""
    holders = {}
    without = []
    for crate in crates:
        name = f"{crate['name']} {crate['version']} ({expression(crate)})"
        files = licence_files(sources / f"{crate['name']}-{crate['version']}")
        if crate["name"] == "pq-src":
            holders.setdefault(POSTGRESQL, []).append(name)
        elif not files:
            without.append(name)
        for file in files:
            holders.setdefault(file.read_text(errors="replace").strip(), []).append(name)
    for package, purpose in PACKAGES.items():
        text = pathlib.Path(f"/usr/share/doc/{package}/copyright").read_text(errors="replace").strip()
        holders.setdefault(text, []).append(f"Debian's {package}: {purpose}")
        for common in sorted(set(re.findall(r"/usr/share/common-licenses/([A-Za-z0-9.-]*[A-Za-z0-9])", text))):
            if (COMMON / common).is_file():
                holders.setdefault((COMMON / common).read_text().strip(), []).append(f"{common}, named above")
    yield "The programs and libraries in this image, and their licences.\n"
    for text, names in holders.items():
        yield "=" * 80 + "\n" + "\n".join(dict.fromkeys(names)) + "\n" + "-" * 80 + "\n" + text + "\n"
    if without:
        head = "Without a file of their own; the licence is the one they declare:"
        yield "\n".join(["=" * 80, head, *without, ""])


def main(listed, sources, sbom_file, notices_file):
    sbom = json.loads(pathlib.Path(listed).read_text())
    # The crates of the repository itself have its licence, and no folder among the fetched ones.
    crates = [c for c in sbom["components"] if c["purl"].startswith("pkg:cargo/") and "download_url=file:" not in c["purl"]]
    folders = [folder for folder in pathlib.Path(sources).iterdir() if folder.is_dir()]
    if len(folders) != 1:
        sys.exit(f"contents.py: {sources} has the sources of {len(folders)} registries, not of one")
    added = [libpq_component(crates), *(debian_component(*package) for package in PACKAGES.items())]
    sbom["components"] += added
    program = sbom["metadata"]["component"]["bom-ref"]
    for entry in sbom["dependencies"]:
        if entry["ref"] == program:
            entry["dependsOn"] = entry.get("dependsOn", []) + [c["bom-ref"] for c in added]
    # Neither the time nor a random number: the same sources give the same file.
    sbom["metadata"].pop("timestamp", None)
    sbom.pop("serialNumber", None)
    pathlib.Path(sbom_file).write_text(json.dumps(sbom, indent=1) + "\n")
    pathlib.Path(notices_file).write_text("\n".join(notices(crates, folders[0])))


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
