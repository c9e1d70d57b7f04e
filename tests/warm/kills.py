#!/usr/bin/env python3
"""A Study in warm workers, of which processes are killed at random moments.

Worker, guard, supervisor and runner get SIGKILL; when the runner is gone, `fettle run` continues. In the end each trial
must have completed once, with its own result, no process may be left, and `fettle replay` must agree.

Usage: kills.py FETTLE [--trials N] [--kills N] [--seed N] [--keep FOLDER]
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from rude import processes_of, warm_study

PATIENCE = 240  # seconds for the whole Study, on a busy machine
KINDS = ("worker", "guard", "supervisor", "runner")
PROGRAM = """
import time
import fettle
for trial in fettle.trials():
    time.sleep(0.05)
    trial.report(1, loss=(trial["x"] - 0.5) ** 2)
"""


def study(trials):
    budget = {"trials": trials, "parallelism": 2, "failures": 1000}
    return warm_study("kills", ["train.py"], budget, {}, algorithm="tpe")


def text_of(pid, name):
    try:
        return pathlib.Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace").strip("\n\0")
    except OSError:
        return ""


def victims(folder, runner):
    """The processes of each kind."""
    found = {kind: [] for kind in KINDS}
    found["runner"].append(runner)
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            is_here = os.readlink(f"/proc/{pid}/cwd").startswith(str(folder))
        except OSError:
            continue
        kind = {"fettle-supervis": "supervisor", "fettle-guard": "guard"}.get(text_of(pid, "comm"))
        if kind is None and "train.py" in text_of(pid, "cmdline"):
            kind = "worker"
        if is_here and kind:
            found[kind].append(pid)
    return found


def run_with_kills(fettle, folder, kills, chance):
    """Returns the number of kills of each kind, once the Study has ended."""
    done = dict.fromkeys(KINDS, 0)
    end = time.monotonic() + PATIENCE
    while True:
        with open(folder / "run.log", "a") as log:
            runner = subprocess.Popen([fettle, "run", "study.yaml"], cwd=folder, stdin=subprocess.DEVNULL,
                                      stdout=log, stderr=log)
        while runner.poll() is None:
            if time.monotonic() > end:
                runner.kill()
                raise TimeoutError(f"it has not ended after {PATIENCE} s")
            time.sleep(chance.uniform(0.1, 0.5))
            kind = KINDS[sum(done.values()) % len(KINDS)]
            chosen = victims(folder, runner.pid)[kind]
            if sum(done.values()) < kills and chosen and runner.poll() is None:
                os.kill(chance.choice(chosen), signal.SIGKILL)
                done[kind] += 1
        if runner.returncode == 0:
            return done


def problems_of(fettle, folder, trials):
    listed = subprocess.run([fettle, "trials", "kills", "--output", "json"], cwd=folder, capture_output=True, text=True)
    found = json.loads(listed.stdout or "[]")
    names = [trial["metadata"]["name"] for trial in found]
    if sorted(names) != sorted(f"kills-{i}" for i in range(trials)):
        yield f"{len(names)} trials, {len(set(names))} names"
    for trial in found:
        name, status = trial["metadata"]["name"], trial["status"]
        if status["phase"] != "Completed":
            yield f"{name} is {status['phase']}"
            continue
        expected = (trial["spec"]["parameters"]["x"] - 0.5) ** 2
        loss = status["report"]["metrics"]["loss"]
        if abs(loss - expected) > 1e-12:
            yield f"{name} has the loss {loss}, not {expected}"
        ended = [run for run in status["runs"] if run.get("outcome") == "Succeeded"]
        if len(ended) != 1:
            yield f"{name} succeeded {len(ended)} times"
    replayed = subprocess.run([fettle, "replay", "kills"], cwd=folder, capture_output=True, text=True)
    if replayed.returncode != 0:
        yield f"replay: {(replayed.stdout + replayed.stderr)[-500:]}"
    if left := processes_of(folder):
        yield f"left running: {left}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("fettle", type=pathlib.Path)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER")
    options = parser.parse_args()
    folder = pathlib.Path(options.keep or tempfile.mkdtemp(prefix="fettle-kills-")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "study.yaml").write_text(json.dumps(study(options.trials), indent=1))
    (folder / "train.py").write_text(PROGRAM)
    fettle = str(options.fettle.resolve())
    began = time.monotonic()
    done = run_with_kills(fettle, folder, options.kills, random.Random(options.seed))
    problems = list(problems_of(fettle, folder, options.trials))
    for problem in problems[:10]:
        print(f"kills: {problem}")
    killed = ", ".join(f"{number} of {kind}" for kind, number in done.items())
    print(f"kills: {options.trials} trials, killed {killed}, {time.monotonic() - began:.0f} s")
    print(f"kills: {0 if problems else sum(done.values())} of {sum(done.values())} survived")
    if not options.keep:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if problems or sum(done.values()) < options.kills else 0)


if __name__ == "__main__":
    main()
