#!/usr/bin/env python3
"""The exchanges of docs/suggest.md are as `fettle suggest` answers: documented_suggest.py FETTLE"""
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "suggest.md"


def pattern_of(reply):
    """A documented reply as a pattern: spaces count only inside of names, `...` is anything."""
    parts = [re.escape(part.replace(" ", "")) for part in reply.split("...")]
    return ".*".join(part.rstrip(",") if i + 1 < len(parts) else part
                     for i, part in enumerate(parts))


def check(fettle, directory, options, block):
    sent = [line[3:] for line in block if line.startswith("-> ")]
    expected = [line[3:] for line in block if line.startswith("<- ")]
    assert len(sent) + len(expected) == len(block), f"neither -> nor <-: {block}"
    run = subprocess.run([fettle, "-C", directory, "suggest", *options], text=True, check=True,
                         input="\n".join(sent) + "\n", capture_output=True)
    found = run.stdout.splitlines()
    for want, got in zip(expected, found):
        assert re.fullmatch(pattern_of(want), got.replace(" ", "")), f"\n{want}\n{got}"
    assert len(found) == len(expected), (expected, found)


def main():
    blocks = re.findall(r"```suggest(.*)\n((?:.*\n)*?)```", PAGE.read_text())
    assert len(blocks) >= 6, len(blocks)
    with tempfile.TemporaryDirectory() as directory:
        for options, block in blocks:
            check(sys.argv[1], directory, shlex.split(options), block.splitlines())
    print(f"{len(blocks)} exchanges are as documented")


main()
