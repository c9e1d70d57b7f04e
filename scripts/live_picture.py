#!/usr/bin/env python3
"""The picture of the live page in the README: docs/img/live.png, the list of `fettle serve` in headless Chromium.

Runs the examples shell.yaml and own-program to their end, and begins fashion-mnist.yaml, which needs the trainer beside
FETTLE and the data set (make setup). The picture is taken once that has some results; then it is stopped.
Usage: live_picture.py FETTLE [FOLDER]   (by a Python that has Playwright; FOLDER: default docs/img)
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

from playwright.sync_api import sync_playwright

ROOT = pathlib.Path(__file__).resolve().parent.parent
WINDOW = {"width": 1320, "height": 520}
RESULTS = 6  # of the Study that runs
MOST_BYTES = 100_000


def serve(fettle, folder):
    """Starts `fettle serve`; returns it and its address."""
    process = subprocess.Popen([fettle, "serve", "--port", "0"], cwd=folder, stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if found := re.search(r"http://\S+", line):
            return process, found[0]
    sys.exit("fettle serve has ended")


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
    fettle = os.path.realpath(sys.argv[1])
    file = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "docs/img").resolve() / "live.png"
    with tempfile.TemporaryDirectory() as folder:
        for example in ("shell.yaml", "own-program/study.yaml"):
            study = ROOT / "examples" / example
            subprocess.run([fettle, "-C", folder, "run", str(study)], check=True, cwd=study.parent, stdout=subprocess.DEVNULL)
        runner = subprocess.Popen([fettle, "run", str(ROOT / "examples/fashion-mnist.yaml")], cwd=folder,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)  # fmt: skip
        server, address = serve(fettle, folder)
        try:
            take_picture(address, file)
        finally:
            for process in (server, runner):
                process.send_signal(signal.SIGINT)
                process.wait()
    size = file.stat().st_size
    print(f"{file.name} {size:,} bytes")
    if size > MOST_BYTES:
        sys.exit(f"the picture has {size:,} bytes; at most {MOST_BYTES:,}")


if __name__ == "__main__":
    main()
