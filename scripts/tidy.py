#!/usr/bin/env python3
"""Runs clang-tidy over the files named, as many at once as there are cores.

A file that was clean is not looked at again until it, a header it includes, or .clang-tidy changes:
stamps live in ~/.cache/fettle/tidy, keyed by the hash of all of those.
Usage: tidy.py BUILD_DIRECTORY FILE...
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

CACHE = pathlib.Path.home() / ".cache/fettle/tidy"
# The compiler is GCC: some of its attributes and pragmas are news to clang.
EXTRA = ["--extra-arg=-Wno-ignored-attributes", "--extra-arg=-Wno-unknown-pragmas"]
INCLUDE = re.compile(rb'^#include "([^"]+)"', re.M)


def closure(path, seen):
    """The file and every project header it includes, directly or not."""
    if path in seen or not os.path.exists(path):
        return seen
    seen.add(path)
    for name in INCLUDE.findall(pathlib.Path(path).read_bytes()):
        closure(name.decode(), seen)
    return seen


def stamp(path, command, version):
    digest = hashlib.sha256(version + command.encode() + repr(EXTRA).encode())
    digest.update(pathlib.Path(".clang-tidy").read_bytes())
    for name in sorted(closure(path, set())):
        digest.update(name.encode() + b"\0" + pathlib.Path(name).read_bytes())
    return CACHE / digest.hexdigest()


def check(path, command, build, version):
    mark = stamp(path, command, version)
    if mark.exists():
        return ""
    done = subprocess.run(["clang-tidy", "--quiet", "-p", build, *EXTRA, path], capture_output=True, text=True)
    if done.returncode == 0:
        mark.touch()
        return ""
    return done.stdout or done.stderr


def main():
    build, files = sys.argv[1], sys.argv[2:]
    CACHE.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True).stdout
    root = os.getcwd()
    commands = {}
    for entry in json.load(open(os.path.join(build, "compile_commands.json"))):
        # The build folder's place is no part of what is checked.
        commands[os.path.relpath(entry["file"], root)] = entry.get("command", "").replace(root, "")
    known = [f for f in files if f in commands]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for output in pool.map(lambda f: check(f, commands[f], build, version), known):
            if output:
                failed += 1
                print(output)
    print(f"lint: clang-tidy: {len(known)} files, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
