#!/usr/bin/env python3
"""Counts turns of phrase in comments that hide a sentence's subject, and refuses more of them than there were last time.

A comment is a sentence with a subject and a verb, or a noun phrase as the field writes it: "Indices into means_ of the
Pareto front", not "places in means_ of those that none dominates". A word list cannot tell, but these turns nearly
always stand where a noun or a verb is missing. AT_MOST is a ratchet: lower it after comments were rewritten.
Usage: sentences_lint.py [--count | --list TURN] [PATH...]   (default: all C++ and CUDA files of the repository)
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys

TURNS = {
    "begins with What, Of or Where": re.compile(r"(?:^|[.;:!?] )(?:What|Of|Where)\b"),
    "what is, it or they": re.compile(r"\bwhat (?:is|it|they)\b", re.IGNORECASE),
    "those, ones": re.compile(r"\b(?:those|ones)\b", re.IGNORECASE),
    "there is none": re.compile(r"\bthere (?:is|are) none\b", re.IGNORECASE),
    "is told, of which": re.compile(r"\b(?:is|are) told\b|\bof which\b", re.IGNORECASE),
}
AT_MOST = {
    "begins with What, Of or Where": 1,
    "what is, it or they": 1,
    "those, ones": 57,
    "there is none": 0,
    "is told, of which": 5,
}
SOURCES = ("*.h", "*.cpp", "*.inl", "*.cu", "*.cuh")
COMMENT = re.compile(r"""(?:"(?:\\.|[^"\\])*"|[^"/]|/(?!/))*//+ ?(.*)$""")


def comments_in(text):
    """(line number, comment) with the lines of a block joined; a comment behind code stands alone."""
    block, begins = [], 0
    for number, line in enumerate(text.split("\n") + [""], start=1):
        found = COMMENT.match(line)
        alone = found is not None and line.lstrip().startswith("//")
        if alone and found.group(1):
            begins = begins if block else number
            block.append(found.group(1))
            continue
        if block:
            yield begins, " ".join(block)
            block = []
        if found and not alone:
            yield number, found.group(1)


def find(paths):
    """Turn -> ["path:line: comment"], one entry for each time it is used."""
    out = collections.defaultdict(list)
    for path in paths:
        for line, comment in comments_in(pathlib.Path(path).read_text()):
            for turn, pattern in TURNS.items():
                for place in pattern.finditer(comment):
                    around = comment[max(0, place.start() - 40):place.end() + 60]
                    out[turn].append(f"{path}:{line}: {around}")
    return out


def count_in(text):
    """Turn -> how often the comments of one source use it."""
    comments = [comment for _, comment in comments_in(text)]
    return {turn: sum(len(pattern.findall(comment)) for comment in comments) for turn, pattern in TURNS.items()}


def too_many(found, at_most):
    """A line for each turn that is used more often than before."""
    for turn in TURNS:
        if len(found[turn]) > at_most[turn]:
            yield (f'"{turn}" {len(found[turn])} times in comments, {at_most[turn]} before: give the sentence a subject '
                   f'and a verb (scripts/sentences_lint.py --list "{turn}")')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", metavar="TURN", help="print each place where this turn, or part of one, is used")
    parser.add_argument("--count", action="store_true", help="print how often each is used")
    parser.add_argument("paths", nargs="*")
    options = parser.parse_args()
    tracked = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *SOURCES]
    found = find(options.paths or subprocess.run(tracked, capture_output=True, text=True, check=True).stdout.split())
    if options.list is not None or options.count:
        for turn in TURNS:
            if options.count:
                print(f"{len(found[turn]):5} {turn}")
            elif options.list in turn:
                print(f"# {turn}: {len(found[turn])}", *found[turn], sep="\n")
        return 0
    complaints = list(too_many(found, AT_MOST))
    for complaint in complaints:
        print(f"lint: {complaint}", file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
