#!/usr/bin/env python3
"""Checks that folders explain themselves and hold what belongs in them.

- Every top-level folder has a README.md. So has every folder with MANY or more production sources, or the README of
  its parent describes it as `name/`.
- No folder has more than MOST production sources, apart from tests beside them.
- Test doubles (fake_*, *_fake, test_*, *_testing) are in folders called testing/ or below tests/.
Usage: folders_lint.py   (in the repository; reads tracked files)
"""
import collections
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import house_numbers  # noqa: E402

MANY = 30
MOST = 31
# One file for each layer.
LARGE = {"trainer/model"}
# base/test_paths.h is no double: it tells tests where sources and programs are.
EXEMPT = {"base/test_paths.h", "base/test_paths.cpp"}
DOUBLE = re.compile(r"(fake|test)_\w+\.(h|cpp|cu|cuh|inl)|\w+_(fake|testing)\.(h|cpp|cu|cuh|inl)")


def tracked():
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout
    return [path for path in listed.splitlines() if pathlib.Path(path).is_file()]


def sources_by_folder(paths):
    return collections.Counter(house_numbers.folder_of(path) for path in paths if house_numbers.is_production(path)
                               and pathlib.PurePath(path).suffix in house_numbers.SOURCE)


def without_readme(paths):
    top = {path.split("/")[0] for path in paths if house_numbers.is_production(path)}
    top |= {"tests", "cmake", "docs", "examples"}
    large = {folder for folder, number in sources_by_folder(paths).items() if number >= MANY}
    return sorted(folder for folder in top | large
                  if f"{folder}/README.md" not in paths and not is_described_above(folder))


def is_described_above(folder):
    path = pathlib.Path(folder)
    readme = path.parent / "README.md"
    return len(path.parts) > 1 and readme.is_file() and f"`{path.name}/`" in readme.read_text()


def too_large(paths):
    for folder, number in sorted(sources_by_folder(paths).items()):
        if number > MOST and folder not in LARGE:
            yield f"{folder} has {number} sources, more than {MOST}: make rooms"


def misplaced_doubles(paths):
    for path in paths:
        parts = path.split("/")
        if DOUBLE.fullmatch(parts[-1]) and "testing" not in parts[:-1] and parts[0] != "tests":
            if not re.search(r"_test\.\w+$", parts[-1]) and path not in EXEMPT:
                yield path


def main():
    paths = tracked()
    found = [f"{folder} has no README.md" for folder in without_readme(paths)]
    found += too_large(paths)
    found += [f"{path}: a test double belongs in a folder called testing/" for path in misplaced_doubles(paths)]
    for line in found:
        print(f"lint: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
