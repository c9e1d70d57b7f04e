#!/usr/bin/env python3
"""Checks how folders are kept: what is in them, and who includes whom.

- Every top-level folder of sources, and every folder with TEN or more production sources, has a README.md.
- Test doubles (fake_*, *_fake, test_*, *_testing) are in folders called testing/ or below tests/.
- No two folders include each other, below the top-level folders of LAYERED.
Usage: folders_lint.py   (in the repository; reads tracked files)
"""
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import house_numbers  # noqa: E402

TEN = 10
DOUBLE = re.compile(r"(fake|test)_\w+\.(h|cpp|cu|cuh|inl)|\w+_(fake|testing)\.(h|cpp|cu|cuh|inl)")
LAYERED = ("kernels",)


def tracked():
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout
    return [path for path in listed.splitlines() if pathlib.Path(path).is_file()]


def without_readme(paths):
    sources = [path for path in paths if house_numbers.is_production(path)]
    top = {path.split("/")[0] for path in sources} | {"tests", "cmake", "docs", "examples"}
    count = {}
    for path in sources:
        if pathlib.PurePath(path).suffix in house_numbers.SOURCE:
            folder = house_numbers.folder_of(path)
            count[folder] = count.get(folder, 0) + 1
    large = {folder for folder, number in count.items() if number >= TEN}
    return sorted(folder for folder in top | large if f"{folder}/README.md" not in paths)


def misplaced_doubles(paths):
    for path in paths:
        parts = path.split("/")
        if DOUBLE.fullmatch(parts[-1]) and "testing" not in parts[:-1] and parts[0] != "tests":
            if not re.search(r"_test\.\w+$", parts[-1]):
                yield path


def mutual_includes(paths):
    texts = {path: pathlib.Path(path).read_text(errors="replace") for path in paths
             if pathlib.PurePath(path).suffix in house_numbers.SOURCE}
    pairs = list(house_numbers.includes(texts))
    for top in LAYERED:
        inside = [(f, t) for f, t in pairs if f.startswith(top + "/") and t.startswith(top + "/")]
        for one, other in house_numbers.mutual(house_numbers.arrows_between(inside, house_numbers.folder_of)):
            example = {}
            for f, t in inside:
                example.setdefault((house_numbers.folder_of(f), house_numbers.folder_of(t)), f"{f} includes {t}")
            yield f"{one} and {other} include each other: {example[(one, other)]}, {example[(other, one)]}"


def main():
    paths = tracked()
    found = [f"{folder} has no README.md" for folder in without_readme(paths)]
    found += [f"{path}: a test double belongs in a folder called testing/" for path in misplaced_doubles(paths)]
    found += list(mutual_includes(paths))
    for line in found:
        print(f"lint: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
