#!/usr/bin/env python3
"""Every whole Study in README.md and docs/*.md passes `fettle validate`, without a warning.

Blocks with an ellipsis are parts, and are passed over. Usage: documented_studies.py FETTLE
"""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```yaml\n((?:#[^\n]*\n)*apiVersion: fettle\.dev/.*?)^```$", re.MULTILINE | re.DOTALL)


def complaints(fettle, study):
    """What `fettle validate` says against a Study whose programs are beside it and read every parameter."""
    with tempfile.TemporaryDirectory() as folder:
        reads = "".join(f"# FETTLE_PARAM_{name.upper()}\n" for name in re.findall(r"name: (\w+), type:", study))
        for program in re.findall(r"[\w-]+\.(?:py|sh)\b", study):
            pathlib.Path(folder, program).write_text(reads)
        checked = subprocess.run([fettle, "validate", "-"], input=study, capture_output=True, text=True, cwd=folder,
                                 check=False)
    said = checked.stdout + checked.stderr
    return said if checked.returncode != 0 or "warning:" in said else ""


def main():
    fettle = str(pathlib.Path(sys.argv[1]).resolve())
    studies, wrong = 0, []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = page.read_text()
        for block in BLOCK.finditer(text):
            if "…" in block[1] or "kind: Study" not in block[1]:
                continue
            studies += 1
            said = complaints(fettle, block[1])
            if said:
                line = text.count("\n", 0, block.start()) + 1
                wrong.append(f"{page.relative_to(ROOT)}:{line}: {said}")
    if studies == 0:
        wrong.append("no document has a whole Study")
    print("\n".join(wrong) if wrong else f"documented Studies: {studies} are valid")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
