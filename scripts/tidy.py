#!/usr/bin/env python3
"""Runs clang-tidy over the production files, as many at once as there are cores.

Tests are left out. The compiler and the sanitizers find what they do wrong, and scripts/names_lint.py
checks their names and the length of their functions.

A file that was clean is not checked again until it, a header it includes, or .clang-tidy changes:
stamps live in ~/.cache/fettle/tidy, keyed by the hash of all of those. With --sample, as in `make
test`, that hash also chooses an eighth of the files: other ones with every change.
Usage: tidy.py BUILD_DIRECTORY [--sample | FILE...]   (all production files)
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

CACHE = pathlib.Path.home() / ".cache/fettle"
STAMPS = CACHE / "tidy"
# From PyPI, since it takes little more than half the time of Debian 12's version 14: it checks only
# what lies outside of system headers.
VERSION = "23.1.4"
# The compiler is GCC: some of its attributes and pragmas are news to clang, its library uses what it
# calls deprecated, and omp.h is its own.
GCC_HEADERS = subprocess.run(["g++", "-print-file-name=include"], capture_output=True, text=True).stdout.strip()
EXTRA = [f"--extra-arg={flag}" for flag in ("-Wno-ignored-attributes", "-Wno-unknown-pragmas",
                                            "-Wno-deprecated-declarations", "-idirafter", GCC_HEADERS)]
INCLUDE = re.compile(rb'^#include "([^"]+)"', re.M)
# Tests, and what only they use.
NOT_PRODUCTION = re.compile(r"(_test|testing|_test_main)\.cpp$|(^|/)(testing|tests|e2e)/|(^|/)(fake|test)_|core/plan_(case|text)\.cpp$")


def program():
    """The path of clang-tidy; installs it where it is not there."""
    folder = CACHE / f"clang-tidy-{VERSION}"
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="clang-tidy.partial-", dir=CACHE) as staging:
            site = pathlib.Path(staging) / "site"
            subprocess.run(
                [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:",
                 "--disable-pip-version-check", "--target", site, f"clang-tidy=={VERSION}"],
                check=True,
            )  # fmt: skip
            site.rename(folder)  # whole or not at all
    return folder / "clang_tidy/data/bin/clang-tidy"


def closure(path, seen):
    """The file and every project header it includes, directly or not."""
    if path in seen or not os.path.exists(path):
        return seen
    seen.add(path)
    for name in INCLUDE.findall(pathlib.Path(path).read_bytes()):
        closure(name.decode(), seen)
    return seen


def stamp(path, command):
    digest = hashlib.sha256(f"{VERSION} {command} {EXTRA}".encode())
    digest.update(pathlib.Path(".clang-tidy").read_bytes())
    for name in sorted(closure(path, set())):
        digest.update(name.encode() + b"\0" + pathlib.Path(name).read_bytes())
    return STAMPS / digest.hexdigest()


def check(tidy, path, mark, build):
    """What clang-tidy says of a file; nothing where it is clean."""
    if mark.exists():
        return ""
    # Files that only tests use are compiled with a precompiled header of GCC's.
    command = [tidy, "--quiet", "-p", build, *EXTRA, "--extra-arg=-Wno-ignored-gch", path]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        mark.touch()
        return ""
    return done.stdout or done.stderr


def production_files():
    listed = subprocess.run(["git", "ls-files", "*.cpp"], capture_output=True, text=True, check=True).stdout
    return [path for path in listed.splitlines() if not NOT_PRODUCTION.search(path)]


def main():
    build, sample = sys.argv[1], sys.argv[2:] == ["--sample"]
    files = production_files() if sample else sys.argv[2:] or production_files()
    STAMPS.mkdir(parents=True, exist_ok=True)
    root = os.getcwd()
    commands = {}
    with open(os.path.join(build, "compile_commands.json")) as database:
        for entry in json.load(database):
            # The build folder's place is no part of what is checked.
            commands[os.path.relpath(entry["file"], root)] = entry.get("command", "").replace(root, "")
    marks = {f: stamp(f, commands[f]) for f in files if f in commands}
    if sample:
        marks = {f: mark for f, mark in marks.items() if mark.name[0] in "01"}
    tidy = program()
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for output in pool.map(lambda f: check(tidy, f, marks[f], build), marks):
            if output:
                failed += 1
                print(output)
    print(f"lint: clang-tidy: {len(marks)} files, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
