#!/usr/bin/env python3
"""Pictures for the documents, from a real run of examples/fashion-mnist.yaml.

docs/img/screen.svg is what the terminal showed in the middle of the Study, docs/img/report.png its report page in
headless Chromium. docs/img/loop.svg is written by hand. The run needs the trainer beside FETTLE, the data set
(make setup) and two to ten minutes.
Usage: pictures.py FETTLE [FOLDER]   (FOLDER: where the pictures go; default docs/img)
"""

import fcntl
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import terminal_picture  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
STUDY = ROOT / "examples/fashion-mnist.yaml"
NAME = "fashion-mnist"
COLUMNS, ROWS = 108, 25
PAGE = "1320,1036"  # what is seen of the report page: the numbers and the first four charts
MOST_BYTES = 300_000  # of all pictures together


def run_in_terminal(command, folder):
    """Runs a command on a terminal of its own; returns each screen that it showed."""
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        os.chdir(folder)
        os.environ.update(TERM="xterm-256color", LC_ALL="C.UTF-8")
        os.environ.pop("NO_COLOR", None)
        os.execv(command[0], command)
    screen = terminal_picture.Screen(ROWS, COLUMNS)
    frames = []
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        screen.feed(data)
        frames.append(screen.copy())
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
        sys.exit("the Study failed:\n" + frames[-1].text() if frames else "the Study printed nothing")
    return frames


def telling_frame(frames):
    """The fullest screen of the middle of a Study: most of what a screen can say is on it."""

    def share_done(frame):
        found = re.search(r"(\d+) of (\d+) trials", frame.text())
        return int(found[1]) / int(found[2]) if found else 0

    middle = [frame for frame in frames if 0.5 <= share_done(frame) <= 0.75]
    if not middle:
        sys.exit("no screen shows the middle of the Study")
    fullest = max(len(frame.text().split()) for frame in middle)
    return [frame for frame in middle if len(frame.text().split()) == fullest][-1]


def picture_of_page(page, folder):
    """A PNG of an HTML file, as Chromium draws it."""
    picture = pathlib.Path(folder) / "page.png"
    subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
         f"--user-data-dir={folder}/profile", "--virtual-time-budget=20000", f"--window-size={PAGE}",
         f"--screenshot={picture}", f"file://{page}"],
        check=True, timeout=600, stderr=subprocess.DEVNULL)
    return picture.read_bytes()


def main():
    fettle = os.path.realpath(sys.argv[1])
    out = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "docs/img")
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        frames = run_in_terminal([fettle, "run", str(STUDY)], folder)
        (out / "screen.svg").write_text(telling_frame(frames).svg())
        page = f"{folder}/report.html"
        subprocess.run([fettle, "report", NAME, "-o", page], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        (out / "report.png").write_bytes(picture_of_page(page, folder))
    sizes = {path.name: path.stat().st_size for path in sorted(out.iterdir())}
    print(", ".join(f"{name} {size:,} bytes" for name, size in sizes.items()))
    if sum(sizes.values()) > MOST_BYTES:
        sys.exit(f"the pictures have {sum(sizes.values()):,} bytes together; at most {MOST_BYTES:,}")


if __name__ == "__main__":
    main()
