#!/usr/bin/env python3
"""Checks names and function lengths in C++ and CUDA files by what universal-ctags makes of them, in a second or two.

For all files, since clang-tidy is given production files only:
- No two files define a class, struct, union or enum of one qualified name. Two definitions in one program break the
  one-definition rule, which neither compiler nor linker need report. A type of one .cpp file belongs in an unnamed
  namespace; those do not count.
- Types are CamelCase, functions snake_case, constants and enumerators kCamelCase. Exempt are overrides and what
  GoogleTest calls, names outside namespace fettle (a stand-in bears those of the interface it stands for), and what is
  local to a function.
- A function, or the body of a TEST, has at most 70 lines.
- The name of a test has at most 60 characters: subject, verb, object.
Usage: names_lint.py FILE...
"""
import collections
import json
import re
import subprocess
import sys

LONGEST = 70
LONGEST_TEST_NAME = 60
TEST_MACRO = re.compile(r"(?:TYPED_)?TEST(?:_F|_P)?")
TEST_SIGNATURE = re.compile(r"\(\s*\w+\s*,\s*(\w+)\s*\)")
TYPES = {"class", "struct", "union", "enum"}
TYPE_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")
FUNCTION_NAME = re.compile(r"[a-z][a-z0-9_]*")
CONSTANT_NAME = re.compile(r"k[A-Z0-9][A-Za-z0-9]*")
# Operators, destructors, lambdas (__anon...), macros that look like functions, and what GoogleTest calls.
OTHER_FUNCTION = re.compile(r"operator\b.*|~.*|__anon.*|[A-Z][A-Z0-9_]+|PrintTo|SetUp|TearDown|SetUpTestSuite"
                            r"|TearDownTestSuite|MatchAndExplain|Describe\w*")


def read_tags(files):
    command = ["ctags", "--quiet", "--options=NONE", "--language-force=C++", "--output-format=json",
               "--fields=+neKSZ", "--fields-C++=+{properties}", "--kinds-C++=+p", "--pattern-length-limit=0",
               "-D", "__launch_bounds__(x)=", "-L", "-", "-f", "-"]
    listed = subprocess.run(command, input="\n".join(files), capture_output=True, text=True, check=True)
    return [tag for tag in map(json.loads, listed.stdout.splitlines()) if tag["_type"] == "tag"]


def place(tag):
    return f"{tag['path']}:{tag['line']}"


def is_local(tag):
    return tag.get("scopeKind") == "function"


def source_line(tag):
    return tag.get("pattern", "").removeprefix("/^").removesuffix("$/").strip()


def types_defined_twice(tags):
    """Nothing of an unnamed namespace or a function: those are types of their own in every file."""
    places = collections.defaultdict(dict)
    for tag in tags:
        name = f"{tag['scope']}::{tag['name']}" if "scope" in tag else tag["name"]
        specialised = re.search(rf"\b(class|struct|union)\s+{re.escape(tag['name'])}\s*<", source_line(tag))
        if tag["kind"] in TYPES and "__anon" not in name and not is_local(tag) and not specialised:
            places[name].setdefault(tag["path"], place(tag))
    for name, found in sorted(places.items()):
        if len(found) > 1:
            yield f"{' and '.join(sorted(found.values()))}: both define {name}"


def is_constant(tag):
    if tag["kind"] not in ("variable", "member"):
        return tag["kind"] == "enumerator"
    before = source_line(tag).partition(tag["name"])[0]
    # A const member is not static, and a `const` before a * makes no constant of a pointer.
    return "constexpr" in before or (tag["kind"] == "variable"
                                     and re.fullmatch(r"(inline |static )*const\b[^*]*", before) is not None)


def badly_named(tag, types):
    """What the name should look like, or nothing."""
    kind, name = tag["kind"], tag["name"]
    if is_local(tag) or not tag.get("scope", "").startswith("fettle"):
        return None
    if kind in TYPES and not name.startswith("__anon") and not TYPE_NAME.fullmatch(name):
        return f"type {name}, expected CamelCase"
    if kind in ("function", "prototype") and not FUNCTION_NAME.fullmatch(name):
        # A constructor or a deduction guide bears its type's name.
        if name not in types and not OTHER_FUNCTION.fullmatch(name) and "override" not in tag.get("properties", ""):
            return f"function {name}, expected snake_case"
    if is_constant(tag) and not CONSTANT_NAME.fullmatch(name):
        return f"constant {name}, expected kCamelCase"
    return None


def long_test_name(tag):
    """The name of a test, if it is too long."""
    found = TEST_SIGNATURE.fullmatch(tag.get("signature", "")) if TEST_MACRO.fullmatch(tag["name"]) else None
    too_long = found and len(found[1]) > LONGEST_TEST_NAME
    return found[1] if too_long else None


def findings(files):
    tags = read_tags(files)
    types = {tag["name"] for tag in tags if tag["kind"] in TYPES}
    yield from types_defined_twice(tags)
    for tag in tags:
        if wrong := badly_named(tag, types):
            yield f"{place(tag)}: {wrong}"
        if name := long_test_name(tag):
            yield f"{place(tag)}: test {name} has {len(name)} characters, expected at most {LONGEST_TEST_NAME}"
        lines = tag.get("end", tag["line"]) - tag["line"] + 1
        if tag["kind"] == "function" and lines > LONGEST:
            yield f"{place(tag)}: {tag['name']}{tag.get('signature', '')} has {lines} lines, expected at most {LONGEST}"


def main():
    found = sorted(findings(sys.argv[1:]))
    for line in found:
        print(f"lint: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
