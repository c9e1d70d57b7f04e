#!/usr/bin/env python3
"""Counts the functions that each class declares, and refuses classes with more than MOST of them.

A class with many functions does several jobs. Counted are functions declared in the class and defined elsewhere, with
constructors, operators and overloads; short functions defined in place, defaulted ones, friends, types and members are
not. Test doubles are left out.

Usage: classes_lint.py [--count] [PATH...]   (default: all production C++ headers and sources of the repository;
--count prints the largest classes)
"""
import pathlib
import re
import subprocess
import sys

MOST = 22
# An interface with a function for each operation of a network, and a value with one for each type that it may hold.
EXEMPT = {"Backend", "Json"}
SOURCES = ("*.h", "*.cpp", "*.inl", "*.cu", "*.cuh")
TEST = re.compile(r"(^|/)(tests|testing|e2e|emulator)/|_test\.")
HEAD = re.compile(r"\b(enum\s+)?(?:class|struct)\s+(?:alignas\([^)]*\)\s*)?(\w+)(?:\s+final)?\s*(?::[^;{}()]*)?\{")
NO_FUNCTION = re.compile(r"\s*(using|typedef|friend|static_assert|enum|class|struct|union|template\s*<[^{;]*>\s*(class|struct))\b")


def bare(text):
    """The text without comments and the contents of literals, of the same length."""
    blank = lambda found: re.sub(r"[^\n]", " ", found[0])
    text = re.sub(r'R"(\w*)\(.*?\)\1"', blank, text, flags=re.DOTALL)
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', blank, text, flags=re.DOTALL)


def end_of_block(text, start):
    depth = 0
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place
    return len(text)


def without_arguments_of_templates(statement):
    before = None
    while before != statement:
        before, statement = statement, re.sub(r"<[^<>]*>", "", statement)
    return statement


def is_function(statement):
    if NO_FUNCTION.match(statement):
        return False
    statement = without_arguments_of_templates(re.sub(r"operator\s*\S+?\s*\(", "operator(", statement))
    found = re.search(r"[\w~]\s*\(", statement)
    return found is not None and "=" not in statement[:found.start()] and not re.search(r"=\s*(default|delete)\s*$", statement)


def functions_in(body):
    """Number of functions declared directly in the body of a class, and defined elsewhere."""
    count, place, statement = 0, 0, ""
    while place < len(body):
        character = body[place]
        if character in ";{":
            statement = re.sub(r"\b(public|private|protected)\s*:", " ", statement)
            count += character == ";" and is_function(statement)
            place = end_of_block(body, place) if character == "{" else place
            statement = ""
        else:
            statement += character
        place += 1
    return count


def classes_in(text):
    """(line, name, number of functions) of each class."""
    text = bare(text)
    for head in HEAD.finditer(text):
        if not head[1]:
            body = text[head.end():end_of_block(text, head.end() - 1)]
            yield text.count("\n", 0, head.start()) + 1, head[2], functions_in(body)


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--count"]
    listed = subprocess.run(["git", "ls-files", *SOURCES], capture_output=True, text=True, check=True).stdout
    paths = arguments or [path for path in listed.splitlines() if not TEST.search(path) and pathlib.Path(path).is_file()]
    found = [(number, f"{path}:{line}", name) for path in paths
             for line, name, number in classes_in(pathlib.Path(path).read_text())]
    found.sort(key=lambda row: (-row[0], row[1]))
    if "--count" in sys.argv:
        for number, place, name in found[:15]:
            print(f"{number:4} {name:24} {place}")
        return 0
    wrong = [row for row in found if row[0] > MOST and row[2] not in EXEMPT]
    for number, place, name in wrong:
        print(f"lint: {place}: {name} declares {number} functions, more than {MOST}: split it", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
