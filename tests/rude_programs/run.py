#!/usr/bin/env python3
"""Programs as people write them, each under every way of stopping early that there is.

Each pair of a program (programs.py) and a search (searches.py) is a small Study, run by the real
`fettle run`; some are interrupted and resumed as well. checks.py holds what must be true of all of
them. Nothing here depends on how fast the machine is: what must have happened is waited for.

Usage: run.py FETTLE [--program NAME] [--search NAME] [--at-once N] [--keep FOLDER]
"""
import argparse
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from checks import problems_of
from programs import PROGRAMS
from searches import Listing
from studies import Ended, processes_of, study

PATIENCE = 600  # seconds after which a Study that has not ended never will


class Place:
    """A folder in which one Study runs."""

    def __init__(self, fettle, folder, program, search, trial=None):
        self.fettle, self.folder, self.program, self.search = fettle, folder, program, search
        folder.mkdir(parents=True)
        document = study("rude", program, search.spec, trial or {})
        (folder / "study.yaml").write_text(json.dumps(document, indent=1))

    def start(self):
        """`fettle run`, in a process group of its own."""
        return subprocess.Popen(
            [self.fettle, "run", "study.yaml", "--output", "json"], cwd=self.folder, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def finish(self, running):
        """Its end; one that does not come is a problem of its own."""
        try:
            out, errors = running.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            running.kill()
            running.communicate()
            for process in processes_of(self.folder):
                os.kill(process, signal.SIGKILL)
            return None, [f"it has not ended after {PATIENCE} s"]
        lines = [json.loads(line) for line in out.splitlines()]
        return Ended(self.fettle, self.program, self.search, self.folder, running.returncode, lines, errors), []

    def logs(self):
        return self.folder.glob(".fettle/rude/*/r0/output.log")

    def saves(self):
        """Whether its programs save, and are at work long enough to be caught at it."""
        return self.program.name in ("saves_on_sigterm", "behind_a_shell") and not self.search.pauses

    def hold(self):
        """Keeps programs that save at work in their third epoch, until release()."""
        (self.folder / "hold").touch()

    def release(self):
        (self.folder / "hold").unlink()

    def at_work(self):
        """Whether its first trials run; of programs that save: whether one has trained for a while."""
        if self.saves():
            return any(log.read_bytes().count(b'"step"') >= 2 for log in self.logs())
        return len(list(self.logs())) >= 3

    def has_saved(self):
        return any(self.folder.glob(".fettle/rude/checkpoints/*/*/epoch"))


def wait_until(holds):
    """Polls; False where it has not come after PATIENCE."""
    until = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def run_to_the_end(place):
    ended, problems = place.finish(place.start())
    return problems or problems_of(ended)


def family_of(runner):
    """The process and all its descendants."""
    parents = {}
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = pathlib.Path(f"/proc/{process}/stat").read_text()
            parents[int(process)] = int(stat.rpartition(")")[2].split()[1])
        except OSError:  # ended meanwhile
            pass
    family = [runner]
    for one in family:
        family += [child for child, parent in parents.items() if parent == one]
    return family


def press_ctrl_c(runner):
    os.kill(runner, signal.SIGINT)


def shut_down(runner):
    """As systemctl stop, scancel and a shutdown do: everybody at once."""
    for process in family_of(runner):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)


def kill_the_runner(runner):
    os.kill(runner, signal.SIGKILL)


def interrupted_by(interrupt):
    """Interrupts the run when the first trials are at work; the same command then ends what it began."""

    def run(place):
        place.hold()
        running = place.start()
        wait_until(lambda: running.poll() is not None or place.at_work())
        if not place.saves():
            time.sleep(0.25)  # any moment will do
        interrupt(running.pid)
        _, errors = running.communicate(timeout=PATIENCE)
        problems = []
        if interrupt is not kill_the_runner:
            # The signal itself: the Study had just ended, and fettle no longer listened.
            if running.returncode not in (130, 0, 1, -signal.SIGINT, -signal.SIGTERM):
                problems.append(f"{interrupt.__name__}: exit code {running.returncode}: {errors}")
            if processes_of(place.folder):
                problems.append(f"{interrupt.__name__}: left running: {processes_of(place.folder)}")
        again = place.start()  # while the programs of a killed runner still save
        if place.saves() and not wait_until(place.has_saved):
            problems.append(f"{interrupt.__name__}: the programs had no time to save")
        place.release()
        ended, late = place.finish(again)
        if ended:  # now some sentences are true
            may_say = ended.program.may_say + " interrupted killed behind died"
            ended.program = dataclasses.replace(ended.program, may_say=may_say)
        return problems + (late or problems_of(ended))

    return run


# What a stop does depends on these.
INTERRUPTED = ["every_second_epoch", "saves_on_sigterm", "behind_a_shell", "ignores_sigterm", "leaves_a_process",
               "pool_of_workers", "closes_its_output", "only_at_the_end"]  # fmt: skip
INTERRUPTED_UNDER = ["asha", "asha-promote", "hyperband", "pbt"]


def cells(searches):
    """All there is to run: (name, how, program, search)."""
    for program in PROGRAMS:
        for search in searches:
            yield f"{program.name} under {search.name}", run_to_the_end, program, search
            if program.name not in INTERRUPTED or search.name not in INTERRUPTED_UNDER:
                continue
            for interrupt in (press_ctrl_c, shut_down, kill_the_runner):
                name = f"{program.name} under {search.name}, {interrupt.__name__}"
                yield name, interrupted_by(interrupt), program, search


def run_cell(fettle, root, number, cell, keep):
    name, how, program, search = cell
    folder = root / str(number)
    began = time.monotonic()
    try:
        problems = how(Place(fettle, folder, program, search))
    except (ValueError, KeyError, subprocess.TimeoutExpired) as wrong:
        problems = [f"{type(wrong).__name__}: {wrong}"]
    if keep and problems:
        (folder / "problems").write_text("\n".join([name, *problems]))
    elif not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return name, problems, time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("fettle", type=pathlib.Path)
    parser.add_argument("--program", action="append")
    parser.add_argument("--search", action="append")
    parser.add_argument("--at-once", type=int, default=4 * (os.cpu_count() or 2), metavar="N")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER")
    options = parser.parse_args()
    fettle = str(options.fettle.resolve())
    searches = [s for s in Listing(fettle).searches() if not options.search or s.name in options.search]
    chosen = [c for c in cells(searches) if not options.program or c[2].name in options.program]
    root = pathlib.Path(options.keep or tempfile.mkdtemp(prefix="fettle-rude-")).resolve()
    began = time.monotonic()
    failed = {}
    with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        running = [pool.submit(run_cell, fettle, root, n, cell, options.keep) for n, cell in enumerate(chosen)]
        for future in running:
            name, problems, _ = future.result()
            if problems:
                failed[name] = problems
                print(f"rude programs: {name}:", *problems[:6], sep="\n    ", flush=True)
    if not options.keep:
        shutil.rmtree(root, ignore_errors=True)
    print(f"rude programs: {len({c[2].name for c in chosen})} programs, {len(searches)} searches, "
          f"{time.monotonic() - began:.0f} s")  # fmt: skip
    print(f"rude programs: {len(chosen) - len(failed)} of {len(chosen)} passed")
    sys.exit(1 if failed or not chosen else 0)


if __name__ == "__main__":
    main()
