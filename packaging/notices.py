#!/usr/bin/env python3
"""Writes what licences of others ask to be passed on with binaries: name, version, licence and licence texts of each crate that
is linked into them, as the lock file names it.

    packaging/notices.py PACKAGE... > THIRD-PARTY-NOTICES

Texts are those that the crates' own sources bring; equal ones stand once. Needs cargo, and the sources that a build has
fetched.
"""
import json
import pathlib
import subprocess
import sys

NAMES = ("license", "licence", "copying", "notice", "copyright", "unlicense")


def fail(what):
    sys.exit(f"packaging/notices.py: {what}")


def metadata():
    host = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    host = next(line.split(": ")[1] for line in host.splitlines() if line.startswith("host: "))
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", host]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def linked(metadata, names):
    """The packages that these link, themselves aside; what only builds or tests them is not among these."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    own = set(metadata["workspace_members"])
    left = [identity for identity in own if packages[identity]["name"] in names]
    if len(left) != len(names):
        fail(f"of {', '.join(names)} some are no packages of this workspace")
    seen = set()
    while left:
        identity = left.pop()
        if identity in seen:
            continue
        seen.add(identity)
        for dependency in nodes[identity]["deps"]:
            is_linked = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            is_macro = any("proc-macro" in target["kind"] for target in packages[dependency["pkg"]]["targets"])
            if is_linked and not is_macro:
                left.append(dependency["pkg"])
    return sorted((packages[identity] for identity in seen - own), key=lambda package: (package["name"], package["version"]))


def texts(package):
    folder = pathlib.Path(package["manifest_path"]).parent
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name.lower().startswith(NAMES)]
    return [path.read_text(encoding="utf-8", errors="replace").strip() for path in files]


def main():
    names = sys.argv[1:] or fail("name the packages whose binaries are passed on")
    packages = linked(metadata(), names)
    by_text = {}
    print("Linked into these programs and libraries, each under the licence that stands beside it.\n")
    for package in packages:
        if not package["license"]:
            fail(f"{package['name']} {package['version']} names no licence")
        name = f"{package['name']} {package['version']}"
        print(f"{name}  ({package['license']})  {package['repository'] or ''}".rstrip())
        for text in texts(package):
            by_text.setdefault(text, []).append(name)
    print("the standard library of Rust  (MIT OR Apache-2.0)  https://github.com/rust-lang/rust")
    for text, users in by_text.items():
        print("\n" + "-" * 100 + f"\n{', '.join(users)}:\n\n{text}")


main()
