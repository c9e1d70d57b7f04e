#!/usr/bin/env python3
"""Checks that programs and libraries of a wheel run where its tag promises, and names each symbol that does not.

Usage: wheel_tag.py promised        prints the platform tag
       wheel_tag.py check WHEEL     exit code 1: a symbol is newer than the tag allows
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

# glibc 2.34: RHEL 9, Ubuntu 22.04, Debian 12. Of a newer one, a program would not start there.
PROMISED = "manylinux_2_34_x86_64"
NEWEST = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13), "GCC": (11, 0)}
SYMBOL = re.compile(r"\*UND\*.*\(?\b(GLIBC|GLIBCXX|CXXABI|GCC)_([\d.]+)\)?\s+(\S+)$", re.MULTILINE)


def too_new(dump):
    """(symbol, version) of each symbol in the output of `objdump -T` that the tag does not allow."""
    for family, version, symbol in SYMBOL.findall(dump):
        if tuple(map(int, version.split("."))) > NEWEST[family]:
            yield symbol, f"{family}_{version}"


def elf_files(folder):
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.open("rb").read(4) == b"\x7fELF":
            yield path


def check(wheel):
    """Prints what is too new. Returns whether anything is."""
    found = False
    with tempfile.TemporaryDirectory() as name, zipfile.ZipFile(wheel) as archive:
        archive.extractall(name)
        for path in elf_files(pathlib.Path(name)):
            dump = subprocess.run(["objdump", "-T", path], capture_output=True, text=True, check=True).stdout
            for symbol, version in too_new(dump):
                found = True
                print(f"wheel: {path.name} needs {symbol}@{version}, newer than {PROMISED} has: bind it to an older "
                      "version (scripts/bind_older.py), or change PROMISED in scripts/wheel_tag.py", file=sys.stderr)
    return found


def main():
    if sys.argv[1:] == ["promised"]:
        print(PROMISED)
        return 0
    if len(sys.argv) != 3 or sys.argv[1] != "check":
        print(__doc__, file=sys.stderr)
        return 2
    return 1 if check(sys.argv[2]) else 0


if __name__ == "__main__":
    sys.exit(main())
