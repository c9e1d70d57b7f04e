#!/usr/bin/env python3
"""Counts what the sources look like at a commit: lines, folders that include each other, floors, words.

Usage: scripts/house_numbers.py [COMMIT...]          (default HEAD; several are printed side by side)
       scripts/house_numbers.py --commits FROM..TO   (production lines that each commit added, less those it removed)

Needs git alone; nothing is checked out. What is counted:

- Production lines: all lines of C++, CUDA, Python and shell files and of the chart that are neither tests nor test
  doubles (*_test.*, test_*, testing/, tests/, e2e/, testdata/, the GPU emulator). Generated YAML counts, too.
- Mutual includes: pairs of folders of which each includes the other. Arrows: pairs of which one includes the other.
- Floors: the longest chain of includes between the folders below a top-level folder; folders that include each other
  directly or through others are on one floor. For folders without sub-folders, the same between modules (a header
  and its source).
- Sources of the largest folders, tests apart; functions of the largest classes (scripts/classes_lint.py).
- Turns of phrase in comments that hide a sentence's subject (scripts/sentences_lint.py).
- Words of this project for things that the field has words for, in prose: comments, strings, Markdown, YAML.
"""
import collections
import io
import pathlib
import re
import subprocess
import sys
import tarfile

import classes_lint
import sentences_lint

SOURCE = {".h", ".cpp", ".inl", ".cu", ".cuh"}
OTHER_PRODUCTION = {".py", ".sh", ".yaml", ".tpl", ".txt", ".js", ".html", ".css", ".json"}
PROSE = SOURCE | {".md", ".yaml", ".py", ".sh"}
# The last line names test doubles that had no folder of their own at first.
TEST = re.compile(r"(^|/)(tests|testing|testdata|captured|e2e|emulator)/|_test\.|(^|/)(test|fake)_|_testing\."
                  r"|process_test|random_documents|(^|/)plan_(case|text)\.|^search/(gp/)?testing\.")
# Folders of programs; the others are examples, documents and configuration.
FOLDERS = ("api", "base", "cli", "control", "core", "crds", "explain", "helm", "images", "kernels", "kube", "machine",
           "operator", "python", "runtime", "scripts", "search", "trainer")
WORDS = ("so many", "so much", "so long", "dear", "borne", "became of", "go on", "goes on", "anew", "afresh",
         "add up", "look at", "a look", "looks at", "whoever", "somebody", "nobody", "wishes", "farewell", "happening",
         "in vain", "Moment", "Recording", "Mailbox", "is told", "says so")
COLUMNS = 42


def files_of(commit):
    """Path -> text of the tracked text files, without symbolic links."""
    archive = subprocess.run(["git", "archive", commit], capture_output=True, check=True).stdout
    found = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            if member.isfile():
                found[member.name] = tar.extractfile(member).read().decode("utf-8", "replace")
    return found


def is_production(path):
    suffix = pathlib.PurePath(path).suffix
    return path.split("/")[0] in FOLDERS and not TEST.search(path) and suffix in SOURCE | OTHER_PRODUCTION


def lines_by_folder(files):
    count = collections.Counter()
    for path, text in files.items():
        if is_production(path):
            count[path.split("/")[0]] += text.count("\n")
    return count


def includes(files):
    """(from, to) for the includes among production sources."""
    for path, text in files.items():
        if is_production(path) and pathlib.PurePath(path).suffix in SOURCE:
            for to in re.findall(r'^#include "([^"]+)"', text, re.MULTILINE):
                if to in files and is_production(to):
                    yield path, to


def arrows_between(pairs, name_of):
    return {(a, b) for a, b in ((name_of(f), name_of(t)) for f, t in pairs) if a != b}


def mutual(arrows):
    return sorted({tuple(sorted(arrow)) for arrow in arrows if arrow[::-1] in arrows})


def reachable(arrows):
    """Node -> all that it includes, directly or not."""
    after = collections.defaultdict(set)
    for a, b in arrows:
        after[a].add(b)
    closure = {}
    for start in set(sum(arrows, ())):
        seen, todo = set(), [start]
        while todo:
            for node in after[todo.pop()] - seen:
                seen.add(node)
                todo.append(node)
        closure[start] = seen
    return closure


def floors(arrows):
    """Nodes on the longest chain once those that reach each other are one (a knot)."""
    closure = reachable(arrows)
    knot = {node: frozenset({node} | {other for other in seen if node in closure[other]})
            for node, seen in closure.items()}
    below = collections.defaultdict(set)
    for a, b in arrows:
        if knot[a] != knot[b]:
            below[knot[a]].add(knot[b])
    height = {}

    def height_of(node):
        if node not in height:
            height[node] = 1 + max((height_of(other) for other in below[node]), default=0)
        return height[node]

    return max((height_of(node) for node in set(knot.values())), default=1)


def folder_of(path):
    return str(pathlib.PurePath(path).parent)


def module_of(path):
    return str(pathlib.PurePath(path).with_suffix(""))


def prose(path, text):
    if pathlib.PurePath(path).suffix in SOURCE:
        return "\n".join(re.findall(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"', text))
    return text


def words(files):
    count = collections.Counter()
    for path, text in files.items():
        if pathlib.PurePath(path).suffix in PROSE and path != "scripts/house_numbers.py":
            # A phrase may be broken over two lines of a comment.
            flat = re.sub(r"\s*\n\s*(//|#)?\s*", " ", prose(path, text))
            for word in WORDS:
                count[word] += len(re.findall(rf"\b{word}\b", flat))
    return count


def measure(commit):
    """(name, number) in the order in which they are printed."""
    files = files_of(commit)
    lines = lines_by_folder(files)
    pairs = list(includes(files))
    folders = arrows_between(pairs, folder_of)
    rows = [("production lines", sum(lines.values()))]
    rows += [(f"  {folder}", lines[folder]) for folder in FOLDERS]
    rows += [("mutual includes between folders", len(mutual(folders))), ("arrows between folders", len(folders))]
    for top in ("api", "core", "kernels", "kernels/cuda", "search", "cli", "runtime", "runtime/kubernetes", "trainer",
                "kube"):
        inside = [(f, t) for f, t in pairs if f.startswith(top + "/") and t.startswith(top + "/")]
        between = arrows_between(inside, folder_of)
        rows += [(f"{top}: folders", len({folder_of(f) for f in files if f.startswith(top + "/") and is_production(f)})),
                 (f"{top}: mutual includes", len(mutual(between))), (f"{top}: arrows between folders", len(between)),
                 (f"{top}: floors of folders", floors(between)),
                 (f"{top}: floors of modules", floors(arrows_between(inside, module_of)))]
    sources = {path: text for path, text in files.items()
               if is_production(path) and pathlib.PurePath(path).suffix in SOURCE}
    rows += [(f"largest folder, number {place}", number) for place, number in
             enumerate(sorted(collections.Counter(map(folder_of, sources)).values(), reverse=True)[:3], 1)]
    classes = sorted((number for text in sources.values() for _, _, number in classes_lint.classes_in(text)), reverse=True)
    rows += [(f"classes with over {classes_lint.MOST} functions", sum(number > classes_lint.MOST for number in classes)),
             ("  functions of the largest", classes[0])]
    turns = collections.Counter()
    for path, text in files.items():
        if pathlib.PurePath(path).suffix in SOURCE:
            turns.update(sentences_lint.count_in(text))
    rows += [(f"comments: {turn}", turns[turn]) for turn in sentences_lint.TURNS]
    tops = {path.split("/")[0] for path in files}
    rows.append(("folders at the top", len({path.split("/")[0] for path in files if "/" in path})))
    rows.append(("folders with a README.md", sum(path.endswith("/README.md") for path in files)))
    rows.append(("  of the top-level ones", sum(f"{top}/README.md" in files for top in tops)))
    said = words(files)
    rows.append(("home-made words", sum(said.values())))
    rows += [(f'  "{word}"', said[word]) for word in WORDS]
    return rows


def lines_by_commit(span):
    """(net production lines, title) of each commit, oldest first. Moves count as removals and additions."""
    log = subprocess.run(["git", "log", "--reverse", "--no-renames", "--numstat", "--format=%x00%s", span],
                         capture_output=True, text=True, check=True).stdout
    for commit in log.split("\0")[1:]:
        title, *rows = commit.strip("\n").split("\n")
        net = 0
        for added, removed, path in (row.split("\t") for row in rows if "\t" in row):
            if added != "-" and is_production(path):
                net += int(added) - int(removed)
        yield net, title


def print_commits(span):
    rows = list(lines_by_commit(span))
    for net, title in rows:
        print(f"{net:>+8,}  {title}")
    print(f"{sum(net for net, _ in rows):>+8,}  in all")


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--commits":
        print_commits(sys.argv[2])
        return 0
    commits = sys.argv[1:] or ["HEAD"]
    if any(commit.startswith("-") for commit in commits):
        print(__doc__.strip())
        return 0 if commits[0] in ("-h", "--help") else 2
    columns = [measure(commit) for commit in commits]
    print(" " * COLUMNS + "".join(f"{commit[:12]:>14}" for commit in commits))
    for row in zip(*columns):
        print(f"{row[0][0]:<{COLUMNS}}" + "".join(f"{number:>14,}" for _, number in row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
