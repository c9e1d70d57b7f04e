#!/usr/bin/env python3
"""The picture of the live page in the README: docs/img/live.png, the list of `fettle serve` in headless Chromium.

Runs the examples shell.yaml and own-program to their end, and begins fashion-mnist.yaml, which needs the trainer beside
FETTLE and the data set (make setup). The picture is taken once that has some results; then it is stopped.
Usage: live_picture.py FETTLE [FOLDER]   (by a Python that has Playwright; FOLDER: default docs/img)
"""

import os
import pathlib
import shutil
import subprocess
import sys

from playwright.sync_api import sync_playwright

ROOT = pathlib.Path(__file__).resolve().parent.parent
WINDOW = {"width": 1320, "height": 520}
RESULTS = 6  # of the Study that runs
MOST_BYTES = 100_000


def take_picture(address, file):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport=WINDOW)
        page.goto(address)
        page.wait_for_selector("table.studies tbody tr")
        enough = "(count) => [...rows.values()].some((row) => row.state === 'running' && row.results >= count)"
        page.wait_for_function(enough, arg=RESULTS, timeout=0)
        page.locator("table.studies tbody tr").nth(2).wait_for()
        page.screenshot(path=file)
        browser.close()


def main():
    fettle = os.environ["FETTLE"] = os.path.realpath(sys.argv[1])
    sys.path.insert(0, str(ROOT / "tests/page"))
    import served

    file = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "docs/img").resolve() / "live.png"
    folder = served.Folder()
    try:
        for example in ("shell.yaml", "own-program/study.yaml"):
            study = ROOT / "examples" / example
            subprocess.run([fettle, "-C", folder.path, "run", str(study)], check=True, cwd=study.parent,
                           stdout=subprocess.DEVNULL)  # fmt: skip
        shutil.copy(ROOT / "examples/fashion-mnist.yaml", folder.path)
        folder.resume("fashion-mnist")
        server = served.Server(folder)
        try:
            take_picture(server.address(), file)
        finally:
            server.close()
    finally:
        folder.close()
    size = file.stat().st_size
    print(f"{file.name} {size:,} bytes")
    if size > MOST_BYTES:
        sys.exit(f"the picture has {size:,} bytes; at most {MOST_BYTES:,}")


if __name__ == "__main__":
    main()
