#!/usr/bin/env python3
"""Checks that what the documents name exists: links, pictures, headings, paths and commands.

- A relative link of a *.md leads to a file or folder, and its #anchor to a heading there, as GitHub spells anchors.
- In code, inline or in a block, a path that begins with a folder of the repository is that of a file or a folder, or
  a pattern that some match. The bare name of a source, script or document in backticks is that of a file somewhere.
- A header or source that a comment of a C++ or CUDA file names is there, or is a header that some file includes with <>.
- In code that begins with `fettle` or `kubectl fettle`, the next word is a command of docs/commands.md; after `make`
  it is a target of the Makefile.
Usage: links_lint.py   (in the repository; reads tracked files, and new ones that git does not ignore)
"""
import glob
import pathlib
import re
import subprocess
import sys
import urllib.parse

FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
INLINE_CODE = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)")
IMAGE = re.compile(r'<img\b[^>]*\bsrc="([^"]+)"|<source\b[^>]*\bsrcset="([^"]+)"')
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
OUTSIDE = re.compile(r"^[a-z][a-z0-9+.-]*:|^//")
CODE = re.compile(r"`([^`\n]+)`")
WORD = re.compile(r"(?<![\w./$<>*~-])([a-z]\w*/[\w.*?{},/-]{2,})(?![\w$<>…(])")
BARE = re.compile(r"[\w-]+\.(?:h|cpp|cu|cuh|inl|py|sh|yaml|md|svg|png)")
SOURCE = re.compile(r"(?<![\w./*<-])\w[\w/-]*\.(?:h|cpp|cu|cuh|inl|py|sh)\b(?![\w(/])")
COMMENT = re.compile(r"//(.*)$", re.MULTILINE)
INCLUDED = re.compile(r'#include <([^>]+)>')
COMMAND = re.compile(r"(?:\$ )?(?:kubectl )?fettle (?:-C \S+ )?([a-z]+)\b")
TARGET = re.compile(r"(?:\$ )?make ([a-z][a-z-]+)\b")
HIDDEN = {"pages"}  # a command that makes docs/commands.md, which does not list it


def listed():
    shown = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], capture_output=True,
                           text=True, check=True).stdout
    return [path for path in shown.splitlines() if pathlib.Path(path).exists()]


def blanked(text, pattern):
    """The text without what the pattern finds; places and line numbers stay."""
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def anchor_of(heading):
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")


def anchors(text):
    seen, found = {}, set()
    for heading in HEADING.findall(blanked(text, FENCE)):
        anchor = anchor_of(heading)
        count = seen.get(anchor, 0)
        seen[anchor] = count + 1
        found.add(anchor if count == 0 else f"{anchor}-{count}")
    return found


def line_of(text, place):
    return text.count("\n", 0, place) + 1


def broken_links(path, text):
    prose = blanked(text, FENCE)
    links = [(found.start(), found[1]) for found in LINK.finditer(blanked(prose, INLINE_CODE))]
    links += [(found.start(), found[1] or found[2]) for found in IMAGE.finditer(prose)]
    for place, link in links:
        if OUTSIDE.match(link):
            continue
        target, _, anchor = urllib.parse.unquote(link).partition("#")
        there = pathlib.Path(path).parent / target if target else pathlib.Path(path)
        if not there.exists():
            yield line_of(text, place), f"the link leads nowhere: {link}"
        elif anchor and there.suffix == ".md" and anchor not in anchors(there.read_text()):
            yield line_of(text, place), f"there is no such heading: {link}"


def braces(path):
    """a/{b,c}.h as a/b.h and a/c.h."""
    found = re.search(r"\{([^{}]*)\}", path)
    if not found:
        return [path]
    return [each for part in found[1].split(",") for each in braces(path[:found.start()] + part + path[found.end():])]


def code_of(text):
    """Place and text of each line of code, inline or in a block."""
    for block in FENCE.finditer(text):
        at = block.start()
        for line in block[0].splitlines(keepends=True):
            yield at, line.strip()
            at += len(line)
    for found in CODE.finditer(blanked(text, FENCE)):
        yield found.start(), found[1]


def broken_paths(path, text, tops):
    for place, code in code_of(text):
        for found in WORD.finditer(code):
            named = found[1].rstrip("/.,")
            if named.split("/")[0] not in tops:
                continue
            for each in braces(named):
                if not glob.glob(each) and not glob.glob(str(pathlib.Path(path).parent / each)):
                    yield line_of(text, place), f"there is no {each}"


def unknown_names(text, names):
    for found in CODE.finditer(blanked(text, FENCE)):
        if BARE.fullmatch(found[1]) and found[1] not in names:
            yield line_of(text, found.start()), f"no file is called {found[1]}"


def unknown_sources(text, paths, names, outside):
    """Of comments. A name with folders is the end of a path."""
    for comment in COMMENT.finditer(text):
        for found in SOURCE.finditer(comment[1]):
            named = found[0]
            known = named in names or named in outside or any(path.endswith("/" + named) for path in paths)
            if not known and named not in paths:
                yield line_of(text, comment.start()), f"no file is called {named}"


def unknown_commands(text, commands, targets):
    for place, code in code_of(text):
        command, target = COMMAND.match(code), TARGET.match(code)
        if command and command[1] not in commands:
            yield line_of(text, place), f"fettle has no command {command[1]}"
        if target and target[1] not in targets:
            yield line_of(text, place), f"the Makefile has no target {target[1]}"


def findings():
    paths = listed()
    tops = {path.split("/")[0] for path in paths if "/" in path and not path.startswith(".")}
    names = {pathlib.PurePath(path).name for path in paths}
    commands = HIDDEN | set(re.findall(r"^## fettle (\w+)$", read("docs/commands.md"), re.MULTILINE))
    targets = set(re.findall(r"^([a-z][a-z-]*):", read("Makefile"), re.MULTILINE))
    sources = {path: read(path) for path in paths if path.endswith((".h", ".cpp", ".cu", ".cuh", ".inl"))}
    outside = {pathlib.PurePath(header).name for text in sources.values() for header in INCLUDED.findall(text)}
    for path, text in sources.items():
        found = unknown_sources(text, paths, names, outside)
        yield from (f"{path}:{line}: {what}" for line, what in sorted(set(found)))
    for path in paths:
        if path.endswith(".md"):
            text = read(path)
            found = [*broken_links(path, text), *broken_paths(path, text, tops),
                     *unknown_names(text, names), *unknown_commands(text, commands, targets)]
            yield from (f"{path}:{line}: {what}" for line, what in sorted(set(found)))


def read(path):
    return pathlib.Path(path).read_text()


def main():
    found = list(findings())
    for line in found:
        print(f"lint: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
