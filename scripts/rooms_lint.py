#!/usr/bin/env python3
"""No two folders of one part of the house include each other, and none below kernels/backends/
includes it (docs/architecture.md). Tests may include anything.

Usage: rooms_lint.py FOLDER..."""

import pathlib
import re
import sys

SOURCES = {".h", ".cpp", ".cu", ".cuh", ".inl"}
# What assembles the operations; only programs and other assembling code may include it.
ROOFS = ("kernels/backends",)


def includes(root):
    """(folder, included folder) -> one line that says where, for files below `root`."""
    found = {}
    for path in sorted(pathlib.Path(root).rglob("*")):
        if path.suffix not in SOURCES or path.stem.endswith("_test") or "testing" in path.parts:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(rf'#include "({re.escape(root)}/[^"]+)"', line)
            if match and (target := str(pathlib.Path(match[1]).parent)) != str(path.parent):
                found.setdefault((str(path.parent), target), f"{path}:{number}: {line}")
    return found


def findings(root):
    found = includes(root)
    for (folder, target), line in found.items():
        if (target, folder) in found and folder < target:
            yield f"{folder} and {target} include each other:\n  {line}\n  {found[target, folder]}"
        roof = next((roof for roof in ROOFS if target.startswith(roof)), None)
        if roof and not folder.startswith((roof, f"{root}/bench", f"{root}/emulator")):
            yield f"{line}: {roof} assembles what lies below it"


def main():
    wrong = [finding for root in sys.argv[1:] for finding in findings(root)]
    for finding in wrong:
        print(f"lint: {finding}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
