#!/usr/bin/env python3
"""Workers that are rude in one way each (rude_worker.py), under the real `fettle run`.

Each Study must end within PATIENCE, with the expected number of trials that completed and failed, and must leave no
process. All run at once: most of them wait.

Usage: rude.py FETTLE [--way NAME] [--at-once N] [--keep FOLDER]
"""
import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "rude_programs"))

from studies import processes_of  # noqa: E402

PATIENCE = 120  # seconds, on a busy machine


@dataclasses.dataclass(frozen=True)
class Case:
    """A way of rude_worker.py, and how a Study of it ends."""

    way: str
    completed: int = 6
    failed: int = 0
    says: str = ""  # in the reason of each trial that failed, or in that of a run
    trials: int = 6
    at_once: int = 2
    trial: dict = dataclasses.field(default_factory=dict)  # over spec.trial
    workers: tuple = (1, 2)  # least and most processes that trained a run



TIMEOUT = {"timeout": "1s"}
CASES = [
    Case("floods", trials=4, completed=4),
    Case("prints_binary"),
    Case("half_a_frame"),
    Case("forged_nonce"),
    Case("answers_for_another"),
    Case("answers_for_all_others", completed=0, failed=6, says="does not speak the worker protocol", workers=(6, 6)),
    Case("too_long_a_frame"),
    Case("endless_frames", completed=0, failed=6, says="does not speak the worker protocol", workers=(6, 6)),
    Case("begins_for_ever", trials=2, completed=0, failed=2, trial=TIMEOUT, says="1s", workers=(2, 2)),
    Case("ends_without_a_begin", completed=0, failed=6, says="reported no metric", workers=(0, 0)),
    Case("ends_twice"),
    Case("ready_twice"),
    Case("ready_of_another_version"),
    Case("more_slots_than_asked"),
    Case("never_ready", workers=(0, 0)),
    Case("never_ready_and_waits", trials=2, completed=0, failed=2, trial=TIMEOUT, says="1s", workers=(0, 0)),
    Case("deaf_after_a_run", trials=2, completed=2, at_once=1, workers=(2, 2)),
    Case("closes_its_assignments", trials=3, completed=3, at_once=1, workers=(3, 3)),
    Case("closes_its_output", trials=2, completed=0, failed=2, says="it closed its standard output", workers=(2, 2)),
    Case("ignores_a_stop", completed=3, failed=3, trial=TIMEOUT, says="1s", workers=(1, 4)),
    Case("exits_in_the_middle", completed=4, failed=2, says="reported no metric", workers=(2, 4)),
    Case("crashes_in_the_middle", completed=4, failed=2, says="crashed with SIGSEGV", workers=(2, 4)),
    Case("leaks", trials=10, completed=10, at_once=1, workers=(2, 4)),
    Case("forks_a_daemon"),
    Case("changes_everything"),
]


def warm_study(name, command, budget, trial, algorithm="random"):
    """A Study in warm workers. `trial`: over spec.trial."""
    container = {
        "name": "trial", "image": "none", "command": [sys.executable, *command],
        "env": [{"name": "PYTHONPATH", "value": str(HERE.parents[1] / "python")}],
        "resources": {"requests": {"cpu": "1m"}},
    }  # fmt: skip
    return {
        "apiVersion": "fettle.dev/v1alpha1", "kind": "Study", "metadata": {"name": name},
        "spec": {
            "objectives": [{"metric": "loss", "direction": "Minimize"}],
            "parameters": [{"name": "x", "type": "Double", "min": 0, "max": 1}],
            "algorithm": {"name": algorithm, "seed": 1},
            "budget": budget,
            "trial": {"execution": "Warm", "gracePeriod": "1s", **trial,
                      "template": {"spec": {"containers": [container]}}},
        },
    }  # fmt: skip


def study(case):
    budget = {"trials": case.trials, "parallelism": case.at_once, "failures": 100}
    return warm_study("rude", [str(HERE / "rude_worker.py"), case.way], budget, {"retries": 0, **case.trial})


def problems_of(case, fettle, folder):
    """A sentence for each thing that is not as it must be."""
    folder.mkdir(parents=True)
    (folder / "study.yaml").write_text(json.dumps(study(case), indent=1))
    try:
        ran = subprocess.run([fettle, "run", "study.yaml"], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                             timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        yield f"it has not ended after {PATIENCE} s"
        ran = None
    left = processes_of(folder)
    if left:
        yield f"left running: {left}"
    listed = subprocess.run([fettle, "trials", "rude", "--output", "json"], cwd=folder, capture_output=True, text=True)
    trials = json.loads(listed.stdout or "[]")
    for phase, number in (("Completed", case.completed), ("Failed", case.failed)):
        found = [trial for trial in trials if trial["status"]["phase"] == phase]
        if len(found) != number:
            yield f"{len(found)} trials are {phase}, not {number}"
        reasons = [reason_of(trial) for trial in found]
        if phase == "Failed" and any(case.says not in reason for reason in reasons):
            yield f"reasons: {sorted(set(reasons))}"
    for trial in trials:
        loss = trial["status"].get("report", {}).get("metrics", {}).get("loss")
        if trial["status"]["phase"] == "Completed" and loss != 1.0:
            yield f"{trial['metadata']['name']} has the loss {loss}"
    workers = workers_of(folder)
    if ran and not case.workers[0] <= workers <= case.workers[1]:
        yield f"{workers} processes trained, not {case.workers[0]} to {case.workers[1]}"
    if ran and ran.returncode != (0 if case.completed else 1):
        yield f"exit code {ran.returncode}: {ran.stdout.decode()[-300:]} {ran.stderr.decode()[-300:]}"


def reason_of(trial):
    return " ".join([*(run.get("message", "") for run in trial["status"].get("runs", [])),
                     *(one.get("message", "") for one in trial["status"].get("conditions", []))])


def workers_of(folder):
    """Number of worker processes that began a run."""
    logs = [log.read_bytes()[:4096] for log in folder.glob(".fettle/rude/*/r*/output.log")]
    return len({found.group(1) for log in logs if (found := re.search(rb"process (\d+)", log))})


def run_case(case, fettle, root, keep):
    began = time.monotonic()
    folder = root / case.way
    problems = list(problems_of(case, fettle, folder))
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return problems, time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("fettle", type=pathlib.Path)
    parser.add_argument("--way", action="append")
    parser.add_argument("--at-once", type=int, default=4 * (os.cpu_count() or 2), metavar="N")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER")
    options = parser.parse_args()
    root = pathlib.Path(options.keep or tempfile.mkdtemp(prefix="fettle-warm-")).resolve()
    chosen = [case for case in CASES if not options.way or case.way in options.way]
    failed, slowest = 0, (0, "")
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        running = [pool.submit(run_case, case, str(options.fettle.resolve()), root, options.keep) for case in chosen]
        for case, future in zip(chosen, running):
            problems, seconds = future.result()
            slowest = max(slowest, (seconds, case.way))
            if problems:
                failed += 1
                print(f"rude workers: {case.way}, {seconds:.1f} s: FAILED", *problems[:6], sep="\n    ", flush=True)
    if not options.keep:
        shutil.rmtree(root, ignore_errors=True)
    print(f"rude workers: {time.monotonic() - began:.0f} s; the slowest is {slowest[1]} with {slowest[0]:.1f} s")
    print(f"rude workers: {len(chosen) - failed} of {len(chosen)} passed")
    sys.exit(1 if failed or not chosen else 0)


if __name__ == "__main__":
    main()
